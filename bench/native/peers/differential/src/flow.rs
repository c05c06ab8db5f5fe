//! A dataflow over tables whose rows come in batches, each at a time of its own.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use differential_dataflow::difference::Semigroup;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::{Data, VecCollection};
use stream::{Columns, Engine, Task};
use timely::dataflow::{ProbeHandle, Scope};
use timely::worker::Worker;

pub type Rows<'a, const N: usize> = VecCollection<'a, u32, [isize; N], isize>;
type Changes<const N: usize> = Rc<RefCell<Vec<([isize; N], isize)>>>;

/// The tables of a dataflow that is being built.
pub struct Flow<'a> {
    scope: Scope<'a, u32>,
    columns: Columns,
    names: Vec<String>,
    summed: bool,
    tables: Vec<Box<dyn Feed>>,
}

impl<'a> Flow<'a> {
    /// Makes a collection of what `row` makes of the rows of a table.
    pub fn table<D, R, F>(&mut self, name: &str, row: F) -> VecCollection<'a, u32, D, R>
    where
        D: Data,
        R: Semigroup + 'static,
        F: Fn(usize) -> Option<(D, R)> + 'static,
    {
        self.input(name, move |range, session| {
            range.filter_map(&row).for_each(|(data, difference)| session.update(data, difference));
        })
    }

    /// Makes a collection of groups; a batch's sums of each may be added up before they enter.
    pub fn groups<R, F>(&mut self, name: &str, row: F) -> VecCollection<'a, u32, u8, R>
    where
        R: Semigroup + Default + 'static,
        F: Fn(usize) -> Option<(u8, R)> + 'static,
    {
        if !self.summed {
            return self.table(name, row);
        }
        self.input(name, move |range, session| {
            stream::sums(range.filter_map(&row), R::plus_equals).for_each(|(group, sum)| session.update(group, sum));
        })
    }

    fn input<D, R, F>(&mut self, name: &str, rows: F) -> VecCollection<'a, u32, D, R>
    where
        D: Data,
        R: Semigroup + 'static,
        F: Fn(Range<usize>, &mut InputSession<u32, D, R>) + 'static,
    {
        let place = self.names.iter().position(|other| other == name).expect(name);
        let (session, collection) = self.scope.new_collection();
        self.tables.push(Box::new(Table { place, session, rows }));
        collection
    }
}

impl std::ops::Deref for Flow<'_> {
    type Target = Columns;

    fn deref(&self) -> &Columns {
        &self.columns
    }
}

trait Feed {
    fn feed(&mut self, batch: &[Range<usize>], next: u32);
}

struct Table<D: Data, R: Semigroup + 'static, F> {
    place: usize,
    session: InputSession<u32, D, R>,
    rows: F,
}

impl<D: Data, R: Semigroup + 'static, F: Fn(Range<usize>, &mut InputSession<u32, D, R>)> Feed for Table<D, R, F> {
    fn feed(&mut self, batch: &[Range<usize>], next: u32) {
        (self.rows)(batch[self.place].clone(), &mut self.session);
        self.session.advance_to(next);
        self.session.flush();
    }
}

struct Running<'w, const N: usize> {
    worker: &'w mut Worker,
    tables: Vec<Box<dyn Feed>>,
    probe: ProbeHandle<u32>,
    time: u32,
    changes: Changes<N>,
}

/// Builds the dataflow of a query, runs it over all batches and prints what was measured.
pub fn run<const N: usize>(worker: &mut Worker, task: &Task, query: impl for<'a> FnOnce(&mut Flow<'a>) -> Rows<'a, N>) {
    let changes = Changes::default();
    let seen = changes.clone();
    let (tables, probe) = worker.dataflow(|scope| {
        let (columns, names) = (task.columns.clone(), task.tables.clone());
        let mut flow = Flow { scope, columns, names, summed: task.summed, tables: Vec::new() };
        let rows = query(&mut flow);
        let (probe, _) = rows.inspect(move |(row, _, difference)| seen.borrow_mut().push((*row, *difference))).probe();
        (flow.tables, probe)
    });
    task.measure(Running { worker, tables, probe, time: 0, changes });
}

impl<const N: usize> Engine for Running<'_, N> {
    fn step(&mut self, batch: &[Range<usize>]) {
        self.time += 1;
        for table in &mut self.tables {
            table.feed(batch, self.time);
        }
        let Running { worker, probe, time, .. } = self;
        worker.step_while(|| probe.less_than(time));
    }

    fn changes(&mut self) -> Vec<(Vec<i64>, i64)> {
        let changes = self.changes.take();
        let wide = |(row, difference): ([isize; N], isize)| (row.map(|value| value as i64).to_vec(), difference as i64);
        changes.into_iter().map(wide).collect()
    }
}
