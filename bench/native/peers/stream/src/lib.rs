//! What each engine gets and how it is measured: coded columns, the same batches, processor time.
//!
//! A task comes on stdin, as lines of words: the query (and `summed`), the folder of the columns, the tables; then a line
//! a batch, of its piece (those of piece `-` only build the state) and the end of each table's rows. Lines on stdout:
//! `piece N SECONDS` for the batches of each piece, `memory BEFORE PEAK` in kilobytes, `row VALUE …` for each row of the
//! answer.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// A query kept fresh by an engine.
pub trait Engine {
    /// Takes a batch, the rows of each table, and returns when its changes are there.
    fn step(&mut self, batch: &[Range<usize>]);

    /// Hands over the rows that changed since the last call, each with its multiplicity.
    fn changes(&mut self) -> Vec<(Vec<i64>, i64)>;
}

/// Columns of 32-bit integers: numbers, cents, yyyymmdd, and texts as their places in the order of all.
#[derive(Clone)]
pub struct Columns(PathBuf);

impl Columns {
    /// Reads columns, which are there until the program ends.
    pub fn read<const N: usize>(&self, names: [&str; N]) -> [&'static [i32]; N] {
        names.map(|name| {
            let bytes = fs::read(self.0.join(format!("{name}.i32"))).expect(name);
            let values = bytes.chunks_exact(4).map(|word| i32::from_le_bytes(word.try_into().unwrap()));
            &*values.collect::<Vec<_>>().leak()
        })
    }

    /// Looks up the code of a text.
    pub fn code(&self, name: &str, text: &str) -> i32 {
        let texts = fs::read_to_string(self.0.join(format!("{name}.txt"))).expect(name);
        texts.lines().position(|line| line == text).expect(text) as i32
    }
}

/// A query, its columns, and the batches of its tables.
pub struct Task {
    pub query: String,
    /// A batch's sums by group are to be added up before they enter the engine.
    pub summed: bool,
    pub columns: Columns,
    pub tables: Vec<String>,
    batches: Vec<(Option<usize>, Vec<usize>)>,
}

impl Task {
    pub fn from_stdin() -> Task {
        let mut lines = io::stdin().lines().map(|line| line.expect("a task on stdin"));
        let [query, folder, tables] = std::array::from_fn(|_| lines.next().expect("a task on stdin"));
        let batch = |line: String| {
            let mut words = line.split(' ');
            let piece = words.next().and_then(|word| word.parse().ok());
            (piece, words.map(|word| word.parse().expect("the end of a table's rows")).collect())
        };
        let (query, summed) = match query.strip_suffix(" summed") {
            Some(query) => (query.to_string(), true),
            None => (query, false),
        };
        Task {
            query,
            summed,
            columns: Columns(folder.into()),
            tables: tables.split(' ').map(str::to_string).collect(),
            batches: lines.map(batch).collect(),
        }
    }

    /// Runs the engine over all batches and prints what was measured, and its answer.
    pub fn measure(&self, mut engine: impl Engine) {
        let mut answer = BTreeMap::<Vec<i64>, i64>::new();
        let mut starts = vec![0; self.tables.len()];
        let before = memory("VmRSS");
        for batches in self.batches.chunk_by(|one, next| one.0.is_some() && one.0 == next.0) {
            let begin = processor_time();
            for (_, ends) in batches {
                let batch: Vec<_> = starts.iter().zip(ends).map(|(&start, &end)| start..end).collect();
                engine.step(&batch);
                starts.clone_from(ends);
            }
            let seconds = processor_time() - begin;
            if let Some(piece) = batches[0].0 {
                println!("piece {piece} {seconds}");
            }
            for (row, multiplicity) in engine.changes() {
                *answer.entry(row).or_default() += multiplicity;
            }
            answer.retain(|_, multiplicity| *multiplicity != 0);
        }
        println!("memory {before} {}", memory("VmHWM"));
        for (row, multiplicity) in answer {
            assert_eq!(multiplicity, 1, "{row:?}");
            println!("row {}", row.iter().map(i64::to_string).collect::<Vec<_>>().join(" "));
        }
    }
}

/// Adds up the values of each group, of which there are at most 16.
pub fn sums<V: Clone + Default>(
    rows: impl Iterator<Item = (u8, V)>,
    add: impl Fn(&mut V, &V),
) -> impl Iterator<Item = (u8, V)> {
    let (mut sums, mut seen) = (vec![V::default(); 16], 0_u16);
    for (group, value) in rows {
        add(&mut sums[group as usize], &value);
        seen |= 1 << group;
    }
    (0..16).zip(sums).filter(move |(group, _)| seen & 1 << group != 0)
}

/// Seconds for which the threads of the process have been busy.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Kilobytes of memory by the name that Linux has for them.
fn memory(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
