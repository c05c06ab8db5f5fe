// Seconds of the batches of a star, its rows decoded beforehand: main FOLDER
//
// VARIABLE_COUNTS, a macro, lists how many variables each relation has. FOLDER has `sizes` (int64: batches, then for each
// relation its rows and whether they have weights), `ends` (int64: for each batch and relation its first row and the
// end), and for each relation, by its number, its keys (int64), weights and columns (double), one after the other.
// It gets `root` (double), `seconds` (double: processor time by batch), and `bytes` (int64: of the views).
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>

#include "star.hpp"

using Star = star::Triggers<VARIABLE_COUNTS>;

template <typename T>
std::vector<T> read(std::ifstream& file, std::size_t count) {
    std::vector<T> out(count);
    file.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(count * sizeof(T)));
    if (!file) {
        std::cerr << "a file is too short\n";
        std::exit(1);
    }
    return out;
}

template <typename T>
void write(const std::string& path, const std::vector<T>& values) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

double now() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "main FOLDER\n";
        return 2;
    }
    const std::string folder = std::string(arguments[1]) + "/";
    std::ifstream sizes(folder + "sizes", std::ios::binary), ends(folder + "ends", std::ios::binary);
    const auto shape = read<int64_t>(sizes, 1 + 2 * Star::RELATIONS);
    const std::size_t batches = static_cast<std::size_t>(shape[0]);
    const auto ranges = read<int64_t>(ends, 2 * batches * Star::RELATIONS);
    std::vector<star::Columns> relations(Star::RELATIONS);
    for (int r = 0; r < Star::RELATIONS; ++r) {
        const std::size_t rows = static_cast<std::size_t>(shape[1 + 2 * r]);
        std::ifstream file(folder + std::to_string(r), std::ios::binary);
        relations[r].keys = read<int64_t>(file, rows);
        if (shape[2 + 2 * r]) relations[r].weights = read<double>(file, rows);
        for (int i = 0; i < Star::VARIABLES[r]; ++i) relations[r].values.push_back(read<double>(file, rows));
    }
    std::vector<double> seconds;
    Star triggers;
    for (std::size_t batch = 0; batch < batches; ++batch) {
        const double start = now();
        for (int r = 0; r < Star::RELATIONS; ++r) {
            const int64_t* range = &ranges[2 * (batch * Star::RELATIONS + r)];
            if (range[0] < range[1]) triggers.batch(r, relations[r], range[0], range[1]);
        }
        seconds.push_back(now() - start);
    }
    write(folder + "root", triggers.root());
    write(folder + "bytes", std::vector<int64_t>{static_cast<int64_t>(triggers.bytes())});
    write(folder + "seconds", seconds);
}
