//! A circuit over tables whose rows come in batches, a transaction each.

use std::cell::RefCell;
use std::mem;
use std::ops::{Deref, Range};
use std::process;
use std::rc::Rc;
use std::sync::Arc;

use dbsp::algebra::{AddAssignByRef, MulByRef};
use dbsp::dynamic::DowncastTrait;
use dbsp::operator::Generator;
use dbsp::trace::{BatchReader as _, Cursor};
use dbsp::utils::Tup2;
use dbsp::{BatchReader, Circuit, CircuitHandle, DBData, OrdIndexedZSet, RootCircuit, Runtime, Stream, ZWeight};
use stream::{Columns, Engine, Task};

pub type Indexed<K, V> = Stream<RootCircuit, OrdIndexedZSet<K, V>>;

/// What several sums of a key are: tuples of integers.
pub trait Sum: DBData + AddAssignByRef + MulByRef<ZWeight, Output = Self> {}

impl<S: DBData + AddAssignByRef + MulByRef<ZWeight, Output = S>> Sum for S {}

type Changes<const N: usize> = Rc<RefCell<Vec<([i64; N], ZWeight)>>>;

/// The tables and the result of a circuit that is being built.
pub struct Plan<'a, const N: usize> {
    circuit: &'a RootCircuit,
    task: Arc<Task>,
    batch: Rc<RefCell<Vec<Range<usize>>>>,
    changes: Changes<N>,
}

impl<const N: usize> Plan<'_, N> {
    /// Makes a source of what `row` makes of the rows of a table: a key, a value, and their weight.
    pub fn table<K, V, F>(&self, name: &str, row: F) -> Indexed<K, V>
    where
        K: DBData,
        V: DBData,
        F: Fn(usize) -> Option<(K, V, ZWeight)> + 'static,
    {
        self.source(name, move |range| {
            range.filter_map(&row).map(|(key, value, weight)| Tup2(Tup2(key, value), weight)).collect()
        })
    }

    /// Keeps the sums of what `value` makes of the rows of a table by the group that `row` gives them.
    pub fn groups<V, S, R, F>(&self, name: &str, row: R, value: F) -> Indexed<u8, S>
    where
        V: DBData,
        S: Sum,
        R: Fn(usize) -> Option<(u8, V)> + 'static,
        F: Fn(&V) -> S + 'static,
    {
        if !self.task.summed {
            return sums(&self.table(name, move |i| row(i).map(|(group, value)| (group, value, 1))), value);
        }
        let batches = self.source(name, move |range| {
            let rows = range.filter_map(&row).map(|(group, row)| (group, value(&row)));
            stream::sums(rows, S::add_assign_by_ref).map(|(group, sum)| Tup2(Tup2(group, sum), 1)).collect()
        });
        sums(&batches, S::clone)
    }

    fn source<K, V, F>(&self, name: &str, rows: F) -> Indexed<K, V>
    where
        K: DBData,
        V: DBData,
        F: Fn(Range<usize>) -> Vec<Tup2<Tup2<K, V>, ZWeight>> + 'static,
    {
        let place = self.task.tables.iter().position(|other| other == name).expect(name);
        let batch = self.batch.clone();
        self.circuit.add_source(Generator::new(move || {
            OrdIndexedZSet::from_tuples((), rows(mem::take(&mut batch.borrow_mut()[place])))
        }))
    }

    /// Hands over what `row` makes of each key and value of a stream, whenever their weight changes.
    pub fn output<K, V, F>(&self, stream: &Indexed<K, V>, row: F)
    where
        K: DBData,
        V: DBData,
        F: Fn(&K, &V) -> [i64; N] + 'static,
    {
        let changes = self.changes.clone();
        stream.inspect(move |batch| {
            let (mut changes, mut cursor) = (changes.borrow_mut(), batch.inner().cursor());
            while cursor.key_valid() {
                while cursor.val_valid() {
                    let weight = **cursor.weight();
                    changes.push((row(cursor.key().downcast_checked(), cursor.val().downcast_checked()), weight));
                    cursor.step_val();
                }
                cursor.step_key();
            }
        });
    }
}

impl<const N: usize> Deref for Plan<'_, N> {
    type Target = Columns;

    fn deref(&self) -> &Columns {
        &self.task.columns
    }
}

/// Keeps the sum of what `value` makes of the rows of each key; none is ever deleted.
pub fn sums<K: DBData, V: DBData, S: Sum>(rows: &Indexed<K, V>, value: impl Fn(&V) -> S + 'static) -> Indexed<K, S> {
    let value = Rc::new(move |row: &V, weight| value(row).mul_by_ref(&weight));
    let first = value.clone();
    rows.chain_aggregate(
        move |row, weight| first(row, weight),
        move |mut sum, row, weight| {
            sum.add_assign_by_ref(&value(row, weight));
            sum
        },
    )
}

struct Running<const N: usize> {
    circuit: CircuitHandle,
    batch: Rc<RefCell<Vec<Range<usize>>>>,
    changes: Changes<N>,
}

/// Builds the circuit of a query, runs it over all batches and prints what was measured.
pub fn run<const N: usize>(task: Task, query: fn(&Plan<N>)) {
    let task = Arc::new(task);
    // NB: the worker's own thread takes the batches, for a switch of threads may take as long as one of them.
    let worker = Runtime::run(1, move |_| {
        let (batch, changes) = (Rc::new(RefCell::new(vec![0..0; task.tables.len()])), Changes::default());
        let (circuit, ()) = RootCircuit::build(|circuit| {
            query(&Plan { circuit, task: task.clone(), batch: batch.clone(), changes: changes.clone() });
            Ok(())
        })
        .expect("a circuit");
        task.measure(Running { circuit, batch, changes });
        process::exit(0); // what is left of the circuit need not be taken apart
    });
    worker.expect("a worker").join().expect("its end");
}

impl<const N: usize> Engine for Running<N> {
    fn step(&mut self, batch: &[Range<usize>]) {
        self.batch.borrow_mut().clone_from_slice(batch);
        self.circuit.transaction().expect("a transaction");
    }

    fn changes(&mut self) -> Vec<(Vec<i64>, i64)> {
        self.changes.take().into_iter().map(|(row, weight)| (row.to_vec(), weight)).collect()
    }
}
