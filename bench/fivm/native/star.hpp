// Cofactor triggers, by hand, of a star: relations that are joined on one key, which is a variable, too.
//
// A block of M variables is [c, s(M), Q(M(M+1)/2)]: how many rows, their sums, and the lower triangle of the sums of
// products, row by row. Each relation has a view, key → block of its own variables only. A batch of a relation is summed
// by key; each sum is added to the view, multiplied with the blocks of the other views, and added to the one root block.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace star {

constexpr int words(int m) { return 1 + m + m * (m + 1) / 2; }

// out += weight · lift(row)
template <int M>
inline void lift(double* __restrict out, double weight, const double* __restrict row) {
    out[0] += weight;
    double* q = out + 1 + M;
    for (int i = 0; i < M; ++i) {
        const double scaled = weight * row[i];
        out[1 + i] += scaled;
        for (int j = 0; j <= i; ++j) q[j] += scaled * row[j];
        q += i + 1;
    }
}

// out = a · b, or out += a · b; the variables of b come after those of a
template <int M, int N, bool ADD>
inline void multiply(const double* __restrict a, const double* __restrict b, double* __restrict out) {
    const auto put = [](double& to, double value) { to = ADD ? to + value : value; };
    constexpr int TRIANGLE = M * (M + 1) / 2;
    const double ca = a[0], cb = b[0];
    put(out[0], ca * cb);
    for (int i = 0; i < M; ++i) put(out[1 + i], cb * a[1 + i]);
    for (int i = 0; i < N; ++i) put(out[1 + M + i], ca * b[1 + i]);
    double* q = out + 1 + M + N;
    for (int i = 0; i < TRIANGLE; ++i) put(q[i], cb * a[1 + M + i]);
    q += TRIANGLE;
    const double* qb = b + 1 + N;
    for (int r = 0; r < N; ++r) {
        const double sb = b[1 + r];
        for (int j = 0; j < M; ++j) put(q[j], sb * a[1 + j]);
        for (int j = 0; j <= r; ++j) put(q[M + j], ca * qb[j]);
        q += M + r + 1;
        qb += r + 1;
    }
}

// Key → block, by open addressing; blocks lie side by side in the order in which their keys came.
template <int M>
class View {
public:
    static constexpr int WORDS = words(M);

    View() : table_(1024, EMPTY) {}

    // The block of a key, of zeros if it is new.
    double* at(int64_t key) {
        std::size_t place = find(key);
        if (table_[place] == EMPTY) {
            if (2 * (keys_.size() + 1) > table_.size()) {
                grow();
                place = find(key);
            }
            table_[place] = static_cast<int32_t>(keys_.size());
            keys_.push_back(key);
            blocks_.resize(blocks_.size() + WORDS, 0.0);
        }
        return blocks_.data() + static_cast<std::size_t>(table_[place]) * WORDS;
    }

    // The block of a key, or none.
    const double* get(int64_t key) const {
        const int32_t slot = table_[find(key)];
        return slot == EMPTY ? nullptr : blocks_.data() + static_cast<std::size_t>(slot) * WORDS;
    }

    void clear() {
        for (const int64_t key : keys_) erase(key);
        keys_.clear();
        blocks_.clear();
    }

    const std::vector<int64_t>& keys() const { return keys_; }
    const double* block(std::size_t slot) const { return blocks_.data() + slot * WORDS; }
    std::size_t bytes() const { return 4 * table_.size() + 8 * keys_.size() + 8 * blocks_.size(); }

private:
    static constexpr int32_t EMPTY = -1;

    static std::size_t hash(int64_t key) {
        return static_cast<std::size_t>((static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u) >> 32);
    }

    std::size_t find(int64_t key) const {
        const std::size_t mask = table_.size() - 1;
        std::size_t place = hash(key) & mask;
        while (table_[place] != EMPTY && keys_[table_[place]] != key) place = (place + 1) & mask;
        return place;
    }

    // NB: only where all keys go: what lay behind this one is no longer found
    void erase(int64_t key) {
        const std::size_t mask = table_.size() - 1;
        std::size_t place = hash(key) & mask;
        while (table_[place] != EMPTY) {
            table_[place] = EMPTY;
            place = (place + 1) & mask;
        }
    }

    void grow() {
        std::vector<int32_t> table(2 * table_.size(), EMPTY);
        table_.swap(table);
        for (std::size_t slot = 0; slot < keys_.size(); ++slot) table_[find(keys_[slot])] = static_cast<int32_t>(slot);
    }

    std::vector<int32_t> table_;
    std::vector<int64_t> keys_;
    std::vector<double> blocks_;
};

// Decoded rows of a relation: its key, and its variables, column by column; weights are 1 and -1, none if all are 1.
struct Columns {
    std::vector<int64_t> keys;
    std::vector<double> weights;
    std::vector<std::vector<double>> values;
};

// Relations with so many variables each, in the order in which they are multiplied.
template <int... M>
class Triggers {
public:
    static constexpr int RELATIONS = sizeof...(M);
    static constexpr std::array<int, RELATIONS> VARIABLES{M...};
    static constexpr int ALL = 1 + (M + ...);

    Triggers() : root_(words(ALL), 0.0) {}

    // Rows first … end - 1 of a relation arrive.
    void batch(int relation, const Columns& rows, int64_t first, int64_t end) {
        dispatch(relation, rows, first, end, std::make_index_sequence<RELATIONS>());
    }

    // Of the key, then of all relations' variables.
    const std::vector<double>& root() const { return root_; }

    std::size_t bytes() const {
        return std::apply([](const auto&... view) { return (view.bytes() + ...); }, views_);
    }

private:
    template <std::size_t... I>
    void dispatch(int relation, const Columns& rows, int64_t first, int64_t end, std::index_sequence<I...>) {
        ((relation == static_cast<int>(I) ? trigger<I>(rows, first, end) : void()), ...);
    }

    template <std::size_t R>
    void trigger(const Columns& rows, int64_t first, int64_t end) {
        constexpr int N = VARIABLES[R];
        auto& delta = std::get<R>(deltas_);
        delta.clear();
        std::array<const double*, N> columns;
        for (int i = 0; i < N; ++i) columns[i] = rows.values[i].data();
        for (int64_t at = first; at < end; ++at) {
            std::array<double, N> row;
            for (int i = 0; i < N; ++i) row[i] = columns[i][at];
            lift<N>(delta.at(rows.keys[at]), rows.weights.empty() ? 1.0 : rows.weights[at], row.data());
        }
        auto& view = std::get<R>(views_);
        for (std::size_t slot = 0; slot < delta.keys().size(); ++slot) {
            const int64_t key = delta.keys()[slot];
            const double* block = delta.block(slot);
            double* kept = view.at(key);
            for (int i = 0; i < words(N); ++i) kept[i] += block[i];
            std::array<const double*, RELATIONS> factors;
            if (!gather<R>(key, block, factors, std::make_index_sequence<RELATIONS>())) continue;
            const double value = static_cast<double>(key);
            const std::array<double, 3> lifted{1.0, value, value * value};
            chain<0, 1>(lifted.data(), factors);
        }
    }

    // The block of each relation for a key, that of the delta for its own; false if a relation has none.
    template <std::size_t R, std::size_t... I>
    bool gather(int64_t key, const double* block, std::array<const double*, RELATIONS>& out, std::index_sequence<I...>) {
        return ((out[I] = I == R ? block : std::get<I>(views_).get(key)) && ...);
    }

    template <std::size_t I, int BEFORE>
    void chain(const double* product, const std::array<const double*, RELATIONS>& factors) {
        constexpr int N = VARIABLES[I];
        if constexpr (I + 1 == RELATIONS) {
            multiply<BEFORE, N, true>(product, factors[I], root_.data());
        } else {
            alignas(64) double next[words(BEFORE + N)];
            multiply<BEFORE, N, false>(product, factors[I], next);
            chain<I + 1, BEFORE + N>(next, factors);
        }
    }

    std::tuple<View<M>...> views_, deltas_;
    std::vector<double> root_;
};

}  // namespace star
