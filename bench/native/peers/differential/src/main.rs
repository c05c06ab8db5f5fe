//! TPC-H queries in differential dataflow, one worker: filters before the input, sums as differences.

mod flow;

use differential_dataflow::operators::CountTotal;
use flow::{Flow, Rows};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ONE: isize = 1;

fn main() {
    let task = stream::Task::from_stdin();
    timely::execute_directly(move |worker| {
        match task.query.as_str() {
            "q1" => flow::run(worker, &task, q1),
            "q3" => flow::run(worker, &task, q3),
            "q5" => flow::run(worker, &task, q5),
            "q6" => flow::run(worker, &task, q6),
            "q12" => flow::run(worker, &task, q12),
            "q17" => flow::run(worker, &task, q17),
            "q18" => flow::run(worker, &task, q18),
            other => panic!("there is no program for {other}"),
        }
        std::process::exit(0); // what is left of the dataflow need not be taken apart
    });
}

fn q1<'a>(flow: &mut Flow<'a>) -> Rows<'a, 8> {
    let [flag, status, quantity, price] = flow.read(["l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice"]);
    let [discount, tax, shipdate] = flow.read(["l_discount", "l_tax", "l_shipdate"]);
    let lines = flow.groups("lineitem", move |i| {
        (shipdate[i] <= 1998_09_02).then(|| {
            let [quantity, price, discount, tax] = [quantity, price, discount, tax].map(|column| column[i] as isize);
            let revenue = price * (100 - discount);
            ((flag[i] * 2 + status[i]) as u8, ((quantity, price, revenue, revenue * (100 + tax)), (discount, 1)))
        })
    });
    lines.count_total().map(|(group, ((quantity, price, revenue, charge), (discount, count)))| {
        [group as isize / 2, group as isize % 2, quantity, price, revenue, charge, discount, count]
    })
}

fn q3<'a>(flow: &mut Flow<'a>) -> Rows<'a, 4> {
    let building = flow.code("c_mktsegment", "BUILDING");
    let [customer, segment] = flow.read(["c_custkey", "c_mktsegment"]);
    let [order, buyer, date, priority] = flow.read(["o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"]);
    let [line, price, discount, shipdate] = flow.read(["l_orderkey", "l_extendedprice", "l_discount", "l_shipdate"]);
    let customers = flow.table("customer", move |i| (segment[i] == building).then(|| (customer[i], ONE)));
    let orders = flow
        .table("orders", move |i| (date[i] < 1995_03_15).then(|| ((buyer[i], (order[i], date[i], priority[i])), ONE)));
    let lines = flow.table("lineitem", move |i| {
        (shipdate[i] > 1995_03_15).then(|| (line[i], price[i] as isize * (100 - discount[i] as isize)))
    });
    orders
        .arrange_by_key()
        .join_core(customers.arrange_by_self(), |_, &(order, date, priority), _| Some((order, (date, priority))))
        .arrange_by_key()
        .join_core(lines.arrange_by_self(), |&order, &(date, priority), _| Some((order, date, priority)))
        .count_total()
        .map(|((order, date, priority), revenue)| [order as isize, date as isize, priority as isize, revenue])
}

fn q5<'a>(flow: &mut Flow<'a>) -> Rows<'a, 2> {
    let asia = flow.code("r_name", "ASIA");
    let [region, region_name] = flow.read(["r_regionkey", "r_name"]);
    let [nation, nation_name, nation_region] = flow.read(["n_nationkey", "n_name", "n_regionkey"]);
    let [customer, customer_nation] = flow.read(["c_custkey", "c_nationkey"]);
    let [supplier, supplier_nation] = flow.read(["s_suppkey", "s_nationkey"]);
    let [order, buyer, date] = flow.read(["o_orderkey", "o_custkey", "o_orderdate"]);
    let [line, seller, price, discount] = flow.read(["l_orderkey", "l_suppkey", "l_extendedprice", "l_discount"]);
    let mut name = [None; 256]; // of the nations of Asia
    for (i, _) in region_name.iter().enumerate().filter(|(_, code)| **code == asia) {
        for j in (0..nation.len()).filter(|&j| nation_region[j] == region[i]) {
            name[nation[j] as usize] = Some(nation_name[j] as u8);
        }
    }
    let customers =
        flow.table("customer", move |i| name[customer_nation[i] as usize].map(|name| ((customer[i], name), ONE)));
    let suppliers =
        flow.table("supplier", move |i| name[supplier_nation[i] as usize].map(|name| ((supplier[i], name), ONE)));
    let orders =
        flow.table("orders", move |i| (1994_01_01..1995_01_01).contains(&date[i]).then(|| ((buyer[i], order[i]), ONE)));
    let lines =
        flow.table("lineitem", move |i| Some(((line[i], seller[i]), price[i] as isize * (100 - discount[i] as isize))));
    orders
        .arrange_by_key()
        .join_core(customers.arrange_by_key(), |_, &order, &nation| Some((order, nation)))
        .arrange_by_key()
        .join_core(lines.arrange_by_key(), |_, &nation, &seller| Some((seller, nation)))
        .arrange_by_self()
        .join_core(suppliers.arrange_by_self(), |&(_, nation), _, _| Some(nation))
        .count_total()
        .map(|(nation, revenue)| [nation as isize, revenue])
}

fn q6<'a>(flow: &mut Flow<'a>) -> Rows<'a, 1> {
    let [shipdate, discount, quantity, price] =
        flow.read(["l_shipdate", "l_discount", "l_quantity", "l_extendedprice"]);
    let lines = flow.groups("lineitem", move |i| {
        let kept = (1994_01_01..1995_01_01).contains(&shipdate[i]) && (5..=7).contains(&discount[i]);
        (kept && quantity[i] < 24_00).then(|| (0, price[i] as isize * discount[i] as isize))
    });
    lines.count_total().map(|(_, revenue)| [revenue])
}

fn q12<'a>(flow: &mut Flow<'a>) -> Rows<'a, 3> {
    let modes = ["MAIL", "SHIP"].map(|mode| flow.code("l_shipmode", mode));
    let priorities = ["1-URGENT", "2-HIGH"].map(|priority| flow.code("o_orderpriority", priority));
    let [order, priority] = flow.read(["o_orderkey", "o_orderpriority"]);
    let [line, mode, shipped, committed, received] =
        flow.read(["l_orderkey", "l_shipmode", "l_shipdate", "l_commitdate", "l_receiptdate"]);
    let orders = flow.table("orders", move |i| {
        Some((order[i], if priorities.contains(&priority[i]) { (ONE, 0) } else { (0, ONE) }))
    });
    let lines = flow.table("lineitem", move |i| {
        let late = shipped[i] < committed[i] && committed[i] < received[i];
        let kept = late && (1994_01_01..1995_01_01).contains(&received[i]) && modes.contains(&mode[i]);
        kept.then(|| ((line[i], mode[i] as u8), ONE))
    });
    orders
        .arrange_by_self()
        .join_core(lines.arrange_by_key(), |_, _, &mode| Some(mode))
        .count_total()
        .map(|(mode, (high, low))| [mode as isize, high, low])
}

fn q17<'a>(flow: &mut Flow<'a>) -> Rows<'a, 1> {
    let (brand, container) = (flow.code("p_brand", "Brand#23"), flow.code("p_container", "MED BOX"));
    let [part, part_brand, part_container] = flow.read(["p_partkey", "p_brand", "p_container"]);
    let [line_part, quantity, price] = flow.read(["l_partkey", "l_quantity", "l_extendedprice"]);
    let parts =
        flow.table("part", move |i| (part_brand[i] == brand && part_container[i] == container).then(|| (part[i], ONE)));
    let lines = flow.table("lineitem", move |i| Some(((line_part[i], quantity[i]), (ONE, price[i] as isize))));
    lines
        .arrange_by_key()
        .join_core(parts.arrange_by_self(), |&part, &quantity, _| Some((part, quantity)))
        .reduce(|_, quantities, prices| {
            let count: isize = quantities.iter().map(|(_, (count, _))| count).sum();
            let sum: isize = quantities.iter().map(|(quantity, (count, _))| **quantity as isize * count).sum();
            let small = quantities.iter().filter(|(quantity, _)| 5 * **quantity as isize * count < sum);
            prices.push(((), small.map(|(_, (_, price))| price).sum::<isize>()));
        })
        .map(|_| ())
        .count_total()
        .map(|(_, price)| [price])
}

fn q18<'a>(flow: &mut Flow<'a>) -> Rows<'a, 6> {
    let [customer, name] = flow.read(["c_custkey", "c_name"]);
    let [order, buyer, date, price] = flow.read(["o_orderkey", "o_custkey", "o_orderdate", "o_totalprice"]);
    let [line, quantity] = flow.read(["l_orderkey", "l_quantity"]);
    let customers = flow.table("customer", move |i| Some(((customer[i], name[i]), ONE)));
    let orders = flow.table("orders", move |i| Some(((order[i], (buyer[i], date[i], price[i])), ONE)));
    let lines = flow.table("lineitem", move |i| Some((line[i], quantity[i] as isize)));
    lines
        .count_total()
        .filter(|(_, quantity)| *quantity > 250_00)
        .arrange_by_key()
        .join_core(orders.arrange_by_key(), |&order, &quantity, &(buyer, date, price)| {
            Some((buyer, (order, date, price, quantity)))
        })
        .arrange_by_key()
        .join_core(customers.arrange_by_key(), |&customer, &(order, date, price, quantity), &name| {
            let [name, customer, order, date, price] = [name, customer, order, date, price].map(|value| value as isize);
            Some([name, customer, order, date, price, quantity])
        })
}
