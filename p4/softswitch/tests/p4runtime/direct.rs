//! Direct counters and meters.

use p4runtime::rpc::Code;
use p4runtime::v1::{self, entity::Entity};

use super::common::{Bench, INVALID, MISSING, acl, l2, table};

#[tokio::test]
async fn direct_counters_and_meters() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let entry = acl(10, &[10, 0, 0, 0], &[255, 0, 0, 0]);
    let counter = |packets, bytes| {
        Some(v1::CounterData {
            packet_count: packets,
            byte_count: bytes,
        })
    };
    let meter = Some(v1::MeterConfig {
        cir: 1,
        cburst: 2,
        pir: 3,
        pburst: 4,
        eburst: 0,
    });
    assert_eq!(
        one.insert(table(v1::TableEntry {
            counter_data: counter(1, 1),
            ..l2(1, 1)
        }))
        .await,
        INVALID
    );
    assert_eq!(
        one.insert(table(v1::TableEntry {
            meter_config: meter,
            ..l2(1, 1)
        }))
        .await,
        INVALID
    );
    let full = v1::TableEntry {
        counter_data: counter(5, 500),
        meter_config: meter,
        ..entry.clone()
    };
    assert_eq!(one.insert(table(full.clone())).await, Ok(()));
    let plain = one.tables(entry.clone()).await.remove(0);
    assert_eq!(
        (plain.counter_data, plain.meter_config),
        (None, None),
        "only when asked for"
    );
    let with = v1::TableEntry {
        counter_data: counter(0, 0),
        meter_config: Some(Default::default()),
        ..entry.clone()
    };
    assert_eq!(one.tables(with.clone()).await, [full.clone()]);
    // MODIFY without meter_config resets the meter and leaves the counter.
    assert_eq!(one.modify(table(entry.clone())).await, Ok(()));
    let read = one.tables(with.clone()).await.remove(0);
    assert_eq!(
        (read.counter_data, read.meter_config),
        (counter(5, 500), None)
    );

    let direct = |data| {
        Entity::DirectCounterEntry(v1::DirectCounterEntry {
            table_entry: Some(entry.clone()),
            data,
        })
    };
    assert_eq!(one.insert(direct(counter(1, 1))).await, INVALID);
    assert_eq!(one.delete(direct(None)).await, INVALID);
    assert_eq!(one.modify(direct(counter(7, 70))).await, Ok(()));
    assert_eq!(
        one.modify(direct(None)).await,
        Ok(()),
        "unset data changes nothing"
    );
    assert_eq!(one.modify(direct(counter(-1, 0))).await, INVALID);
    let key = v1::TableEntry {
        action: None,
        ..entry.clone()
    };
    assert_eq!(
        one.read(direct(None)).await,
        [Entity::DirectCounterEntry(v1::DirectCounterEntry {
            table_entry: Some(key.clone()),
            data: counter(7, 70)
        })]
    );
    let none = Entity::DirectCounterEntry(v1::DirectCounterEntry {
        table_entry: Some(acl(11, &[10, 0, 0, 0], &[255, 0, 0, 0])),
        data: counter(1, 1),
    });
    assert_eq!(one.modify(none.clone()).await, MISSING);
    assert_eq!(one.read_error(none).await, Code::NotFound);
    let unset = Entity::DirectCounterEntry(v1::DirectCounterEntry::default());
    assert_eq!(one.modify(unset).await, INVALID);
    let other = Entity::DirectCounterEntry(v1::DirectCounterEntry {
        table_entry: Some(l2(1, 1)),
        data: None,
    });
    assert_eq!(one.modify(other).await, INVALID, "no direct counter there");

    let direct = |config| {
        Entity::DirectMeterEntry(v1::DirectMeterEntry {
            table_entry: Some(entry.clone()),
            config,
            counter_data: None,
        })
    };
    assert_eq!(one.modify(direct(meter)).await, Ok(()));
    assert_eq!(
        one.read(direct(None)).await,
        [Entity::DirectMeterEntry(v1::DirectMeterEntry {
            table_entry: Some(key),
            config: meter,
            counter_data: None
        })]
    );
    assert_eq!(
        one.modify(direct(None)).await,
        Ok(()),
        "unset config resets"
    );
    let eburst = meter.map(|m| v1::MeterConfig { eburst: 1, ..m });
    assert_eq!(one.modify(direct(eburst)).await, INVALID);
    assert_eq!(one.insert(direct(meter)).await, INVALID);
    // With the entry its counter goes.
    assert_eq!(one.delete(table(entry.clone())).await, Ok(()));
    assert_eq!(one.insert(table(entry)).await, Ok(()));
    let fresh = one.tables(with).await.remove(0);
    assert_eq!(
        (fresh.counter_data, fresh.meter_config),
        (counter(0, 0), None),
        "what an INSERT leaves unset is 0 and green"
    );
}
