//! TPC-H queries in DBSP, Feldera's engine, one worker: filters before the input, sums as weights.

mod plan;

use dbsp::utils::{Tup2, Tup3, Tup4, Tup5, Tup6};
use plan::{Plan, sums};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ONE: i64 = 1;

fn main() {
    let task = stream::Task::from_stdin();
    match task.query.as_str() {
        "q1" => plan::run(task, q1),
        "q3" => plan::run(task, q3),
        "q5" => plan::run(task, q5),
        "q6" => plan::run(task, q6),
        "q12" => plan::run(task, q12),
        "q18" => plan::run(task, q18),
        other => panic!("there is no program for {other}"),
    }
}

fn q1(plan: &Plan<8>) {
    let [flag, status, quantity, price] = plan.read(["l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice"]);
    let [discount, tax, shipdate] = plan.read(["l_discount", "l_tax", "l_shipdate"]);
    let row = move |i: usize| {
        let row = Tup4(price[i], quantity[i], discount[i] as u8, tax[i] as u8);
        (shipdate[i] <= 1998_09_02).then(|| ((flag[i] * 2 + status[i]) as u8, row))
    };
    let sums = plan.groups("lineitem", row, |&Tup4(price, quantity, discount, tax)| {
        let [price, quantity, discount, tax] = [price.into(), quantity.into(), discount.into(), tax.into()];
        let revenue = price * (100 - discount);
        Tup6::<i64, i64, i64, i64, i64, i64>(quantity, price, revenue, revenue * (100 + tax), discount, 1)
    });
    plan.output(&sums, |&group, &Tup6(quantity, price, revenue, charge, discount, count)| {
        [i64::from(group / 2), i64::from(group % 2), quantity, price, revenue, charge, discount, count]
    });
}

fn q3(plan: &Plan<4>) {
    let building = plan.code("c_mktsegment", "BUILDING");
    let [customer, segment] = plan.read(["c_custkey", "c_mktsegment"]);
    let [order, buyer, date, priority] = plan.read(["o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"]);
    let [line, price, discount, shipdate] = plan.read(["l_orderkey", "l_extendedprice", "l_discount", "l_shipdate"]);
    let customers = plan.table("customer", move |i| (segment[i] == building).then(|| (customer[i], (), 1)));
    let orders = plan
        .table("orders", move |i| (date[i] < 1995_03_15).then(|| (buyer[i], Tup3(order[i], date[i], priority[i]), 1)));
    let lines = plan.table("lineitem", move |i| {
        (shipdate[i] > 1995_03_15).then(|| (line[i], (), i64::from(price[i]) * i64::from(100 - discount[i])))
    });
    let revenue = orders
        .join_index(&customers, |_, &Tup3(order, date, priority), ()| Some((order, Tup2(date, priority))))
        .join_index(&lines, |&order, &Tup2(date, priority), ()| Some((Tup3(order, date, priority), ())));
    let revenue = sums(&revenue, |()| ONE);
    plan.output(&revenue, |&Tup3(order, date, priority), &revenue| {
        [order.into(), date.into(), priority.into(), revenue]
    });
}

fn q5(plan: &Plan<2>) {
    let asia = plan.code("r_name", "ASIA");
    let [region, region_name] = plan.read(["r_regionkey", "r_name"]);
    let [nation, nation_name, nation_region] = plan.read(["n_nationkey", "n_name", "n_regionkey"]);
    let [customer, customer_nation] = plan.read(["c_custkey", "c_nationkey"]);
    let [supplier, supplier_nation] = plan.read(["s_suppkey", "s_nationkey"]);
    let [order, buyer, date] = plan.read(["o_orderkey", "o_custkey", "o_orderdate"]);
    let [line, seller, price, discount] = plan.read(["l_orderkey", "l_suppkey", "l_extendedprice", "l_discount"]);
    let mut name = [None; 256]; // of the nations of Asia
    for (i, _) in region_name.iter().enumerate().filter(|(_, code)| **code == asia) {
        for j in (0..nation.len()).filter(|&j| nation_region[j] == region[i]) {
            name[nation[j] as usize] = Some(nation_name[j] as u8);
        }
    }
    let customers =
        plan.table("customer", move |i| name[customer_nation[i] as usize].map(|name| (customer[i], name, 1)));
    let suppliers =
        plan.table("supplier", move |i| name[supplier_nation[i] as usize].map(|name| (supplier[i], name, 1)));
    let orders =
        plan.table("orders", move |i| (1994_01_01..1995_01_01).contains(&date[i]).then(|| (buyer[i], order[i], 1)));
    let lines =
        plan.table("lineitem", move |i| Some((line[i], seller[i], i64::from(price[i]) * i64::from(100 - discount[i]))));
    let revenue = orders
        .join_index(&customers, |_, &order, &nation| Some((order, nation)))
        .join_index(&lines, |_, &nation, &seller| Some((seller, nation)))
        .join_index(&suppliers, |_, &nation, &other| (nation == other).then_some((nation, ())));
    let revenue = sums(&revenue, |()| ONE);
    plan.output(&revenue, |&nation, &revenue| [nation.into(), revenue]);
}

fn q6(plan: &Plan<1>) {
    let [shipdate, discount, quantity, price] =
        plan.read(["l_shipdate", "l_discount", "l_quantity", "l_extendedprice"]);
    let lines = plan.table("lineitem", move |i| {
        let kept = (1994_01_01..1995_01_01).contains(&shipdate[i]) && (5..=7).contains(&discount[i]);
        (kept && quantity[i] < 24_00).then(|| ((), (), i64::from(price[i]) * i64::from(discount[i])))
    });
    plan.output(&sums(&lines, |()| ONE), |(), &revenue| [revenue]);
}

fn q12(plan: &Plan<3>) {
    let modes = ["MAIL", "SHIP"].map(|mode| plan.code("l_shipmode", mode));
    let priorities = ["1-URGENT", "2-HIGH"].map(|priority| plan.code("o_orderpriority", priority));
    let [order, priority] = plan.read(["o_orderkey", "o_orderpriority"]);
    let [line, mode, shipped, committed, received] =
        plan.read(["l_orderkey", "l_shipmode", "l_shipdate", "l_commitdate", "l_receiptdate"]);
    let orders = plan.table("orders", move |i| Some((order[i], priorities.contains(&priority[i]), 1)));
    let lines = plan.table("lineitem", move |i| {
        let late = shipped[i] < committed[i] && committed[i] < received[i];
        let kept = late && (1994_01_01..1995_01_01).contains(&received[i]) && modes.contains(&mode[i]);
        kept.then(|| (line[i], mode[i] as u8, 1))
    });
    let counts = orders.join_index(&lines, |_, &high, &mode| Some((mode, high)));
    let counts = sums(&counts, |&high| Tup2(i64::from(high), i64::from(!high)));
    plan.output(&counts, |&mode, &Tup2(high, low)| [mode.into(), high, low]);
}

fn q18(plan: &Plan<6>) {
    let [customer, name] = plan.read(["c_custkey", "c_name"]);
    let [order, buyer, date, price] = plan.read(["o_orderkey", "o_custkey", "o_orderdate", "o_totalprice"]);
    let [line, quantity] = plan.read(["l_orderkey", "l_quantity"]);
    let customers = plan.table("customer", move |i| Some((customer[i], name[i], 1)));
    let orders = plan.table("orders", move |i| Some((order[i], Tup3(buyer[i], date[i], price[i]), 1)));
    let lines = plan.table("lineitem", move |i| Some((line[i], (), quantity[i].into())));
    let large = sums(&lines, |()| ONE)
        .filter(|(_, quantity)| *quantity > 250_00)
        .join_index(&orders, |&order, &quantity, &Tup3(buyer, date, price)| {
            Some((buyer, Tup4(order, date, price, quantity)))
        })
        .join_index(&customers, |&customer, &Tup4(order, date, price, quantity), &name| {
            Some((customer, Tup5(order, date, price, quantity, name)))
        });
    plan.output(&large, |&customer, &Tup5(order, date, price, quantity, name)| {
        [name.into(), customer.into(), order.into(), date.into(), price.into(), quantity]
    });
}
