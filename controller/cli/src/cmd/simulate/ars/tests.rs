//! The experiments reach what they are there to show.
#![allow(clippy::unwrap_used)]

use super::*;

async fn rows(case: Case) -> Vec<Row> {
    let args = ArsArgs {
        case: Some(case),
        seed: 1,
        draws: 2,
        mode: Vec::new(),
        flows: vec![1, 4, 16],
        traffic: None,
        dcqcn: false,
        format: Format::Json,
    };
    run_case(case, &args, &Progress::new(true)).await.unwrap()
}

fn of<'a>(rows: &'a [Row], mode: &'a str) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| row.mode == mode)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; tests/run experiments"]
async fn symmetric() {
    let rows = rows(Case::Symmetric).await;
    for row in of(&rows, "per-packet-quality") {
        assert!(row.throughput.unwrap() >= 0.95, "{row:?}");
    }
    for row in of(&rows, "flowlet-quality").filter(|row| row.traffic == Traffic::Messages) {
        let least = if row.flows_per_uplink == 1 {
            0.80
        } else {
            0.90
        };
        assert!(row.completion.unwrap() >= least, "{row:?}");
        assert!(row.out_of_order_ppm == 0.0, "{row:?}");
    }
    for row in of(&rows, "ecmp").filter(|row| row.traffic == Traffic::Elephants) {
        assert!(row.throughput.unwrap() < 0.85, "hashing collides: {row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; tests/run experiments"]
async fn asymmetric() {
    let rows = rows(Case::Asymmetric).await;
    for row in of(&rows, "per-packet-quality") {
        assert!(row.throughput.unwrap() >= 0.95, "{row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_is_found_within_three_hellos() {
    let rows = rows(Case::Cut).await;
    for row in rows.iter().filter(|row| row.mode != "ecmp") {
        assert!(row.detection_us.unwrap() < 300.0, "{row:?}");
        assert!(row.lost <= row.lost_at_most.unwrap(), "{row:?}");
    }
    for row in of(&rows, "ecmp") {
        assert!(
            row.detection_us.unwrap() > 1_000.0,
            "nobody told it: {row:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gray_link_is_shunned() {
    let rows = rows(Case::Gray).await;
    for row in &rows {
        let share = row.link_share.unwrap();
        let watches = row.mode.contains("quality") || row.what.contains("dead");
        assert!(!watches || share < 0.01, "{row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; tests/run experiments"]
async fn flowlets_with_a_sane_idle_time_stay_in_order() {
    let rows = rows(Case::Reordering).await;
    for row in rows.iter().filter(|row| row.what == "idle time 50 us") {
        assert!(row.out_of_order_ppm == 0.0, "{row:?}");
    }
    let too_short = rows.iter().filter(|row| row.what == "idle time 0 us");
    assert!(too_short.map(|row| row.out_of_order_ppm).sum::<f64>() > 0.0);
}
