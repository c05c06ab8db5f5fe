//! A circuit over tables whose rows come in batches, a transaction each.

use std::cell::RefCell;
use std::mem;
use std::ops::{Deref, Range};
use std::process;
use std::rc::Rc;
use std::sync::Arc;

use dbsp::dynamic::DowncastTrait;
use dbsp::operator::Generator;
use dbsp::trace::{BatchReader as _, Cursor};
use dbsp::utils::Tup2;
use dbsp::{BatchReader, Circuit, CircuitHandle, DBData, OrdIndexedZSet, RootCircuit, Runtime, Stream, ZWeight};
use stream::{Columns, Engine, Task};

pub type Indexed<K, V> = Stream<RootCircuit, OrdIndexedZSet<K, V>>;
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
        let place = self.task.tables.iter().position(|other| other == name).expect(name);
        let batch = self.batch.clone();
        self.circuit.add_source(Generator::new(move || {
            let range = mem::take(&mut batch.borrow_mut()[place]);
            let rows = range.filter_map(&row).map(|(key, value, weight)| Tup2(Tup2(key, value), weight));
            OrdIndexedZSet::from_tuples((), rows.collect())
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
