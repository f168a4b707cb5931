//! Preinitialized tables: the program fills them, and controllers go on from there.
//!
//! The JSON does not tell `entries` from `const entries`; P4Info does.

use p4runtime::v1::{
    self, entity::Entity, set_forwarding_pipeline_config_request::Action as PipelineAction,
};

use super::common::{
    Bench, Controller, DENIED, EXISTS, FULL, INVALID, MISSING, does, id, pipeline, table, ternary,
};

/// The pipeline with `fixed_types` as a table that has initial entries.
fn preinitialized(cookie: u64) -> v1::ForwardingPipelineConfig {
    let mut config = pipeline(cookie);
    let tables = &mut config.p4info.as_mut().unwrap().tables;
    let table = tables
        .iter_mut()
        .find(|t| t.preamble.as_ref().unwrap().id == id("fixed_types"))
        .unwrap();
    table.is_const_table = false;
    table.has_initial_entries = true;
    table.size = 3;
    config
}

async fn start(bench: &Bench) -> Controller {
    let mut one = bench.primary(1).await;
    let push = one.push(PipelineAction::VerifyAndCommit, Some(preinitialized(1)));
    push.await.unwrap();
    one
}

fn all() -> v1::TableEntry {
    v1::TableEntry {
        table_id: id("fixed_types"),
        ..Default::default()
    }
}

fn own(priority: i32) -> Entity {
    table(v1::TableEntry {
        r#match: vec![ternary(1, &[0x12, 0x34], &[0xff, 0xff])],
        priority,
        action: does("to_cpu", &[&[9]]),
        ..all()
    })
}

/// The reason with which a frame of a type goes to the CPU.
fn reason(bench: &Bench, ether_type: [u8; 2]) -> Option<u8> {
    let mut frame = vec![0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 2];
    frame.extend(ether_type);
    frame.push(0);
    let mut switch = bench.switch.lock();
    switch.ingress(3, &frame, 0);
    let packet = switch.dequeue(super::common::CPU, 0)?;
    Some(packet.bytes[1] & 0x7f)
}

#[tokio::test]
async fn entries_of_the_program_can_be_changed() {
    let bench = Bench::new();
    let mut one = start(&bench).await;
    let read = one.tables(all()).await;
    assert_eq!(read.len(), 2, "they are there after the load");
    assert!(read.iter().all(|entry| !entry.is_const));
    let priorities: Vec<i32> = read.iter().map(|entry| entry.priority).collect();
    assert_eq!(priorities, [2, 1], "in the order of declaration");
    assert_eq!(reason(&bench, [0x88, 0xcc]), Some(3));

    let lldp = v1::TableEntry {
        metadata: vec![7],
        action: does("to_cpu", &[&[5]]),
        ..read[0].clone()
    };
    assert_eq!(one.insert(table(lldp.clone())).await, EXISTS);
    assert_eq!(one.modify(table(lldp.clone())).await, Ok(()));
    assert_eq!(reason(&bench, [0x88, 0xcc]), Some(5));
    let marked = v1::TableEntry {
        is_const: true,
        ..lldp.clone()
    };
    assert_eq!(one.modify(table(marked)).await, INVALID);
    assert_eq!(one.insert(own(5)).await, Ok(()));
    assert_eq!(one.insert(own(6)).await, FULL);
    assert_eq!(reason(&bench, [0x12, 0x34]), Some(9));
    assert_eq!(one.delete(table(lldp.clone())).await, Ok(()));
    assert_eq!(one.delete(table(lldp)).await, MISSING);
    assert_eq!(reason(&bench, [0x88, 0xcc]), None);
    assert_eq!(one.tables(all()).await.len(), 2);
}

#[tokio::test]
async fn a_commit_brings_them_back_and_a_reconcile_does_not() {
    let bench = Bench::new();
    let mut one = start(&bench).await;
    let read = one.tables(all()).await;
    assert_eq!(one.delete(table(read[0].clone())).await, Ok(()));
    let changed = v1::TableEntry {
        action: does("to_cpu", &[&[6]]),
        ..read[1].clone()
    };
    assert_eq!(one.modify(table(changed.clone())).await, Ok(()));
    // The size of another table makes it another pipeline.
    let mut next = preinitialized(2);
    next.p4info.as_mut().unwrap().tables[0].size += 1;
    let push = one.push(PipelineAction::ReconcileAndCommit, Some(next));
    push.await.unwrap();
    assert_eq!(one.tables(all()).await, [changed]);
    let push = one.push(PipelineAction::VerifyAndCommit, Some(preinitialized(3)));
    push.await.unwrap();
    assert_eq!(one.tables(all()).await, read);
    // And where P4Info calls the table const, it is.
    let push = one.push(PipelineAction::VerifyAndCommit, Some(pipeline(4)));
    push.await.unwrap();
    assert!(one.tables(all()).await.iter().all(|entry| entry.is_const));
    assert_eq!(one.insert(own(5)).await, DENIED);
}
