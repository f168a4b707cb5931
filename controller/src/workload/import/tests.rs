#![allow(clippy::unwrap_used)]

use super::*;
use prost::Message as _;

fn hints() -> Hints {
    Hints {
        name: "trace".to_owned(),
        ranks_per_host: 8,
        sizes: [2, 1, 8, 1, 1],
        groups: vec![("1".to_owned(), Over::Tensor)],
    }
}

const SIMAI: &str = "\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 4 pp: 2 vpp: 8 ga: 24 all_gpus: 64 checkpoints: 0 checkpoint_initiates: 0 pp_comm 4096
4
grad_gather\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER\t2048\t100
moe_grad_norm1\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER_DP_EP\t512\t100
mlp_moelayer\t-1\t1\tALLTOALL_EP\t256\t1\tALLTOALL_EP\t256\t1\tNONE\t0\t100
attention_row\t-1\t10\tREDUCESCATTER\t64\t20\tALLGATHER\t64\t30\tNONE\t0\t100
";

fn found(job: &Workload) -> Vec<(Operation, Over, u64, u64)> {
    job.exchanges
        .iter()
        .map(|e| (e.operation, e.over, e.bytes, e.times))
        .collect()
}

#[test]
fn simai_files_become_exchanges() {
    assert_eq!(TraceFormat::guess(SIMAI.as_bytes()), TraceFormat::Simai);
    let imported = import(TraceFormat::Simai, SIMAI.as_bytes(), &hints()).unwrap();
    let job = &imported.workload;
    assert_eq!(
        (job.grid.world_size(), job.grid.expert_size(), job.hosts()),
        (64, 4, 8)
    );
    assert_eq!(
        found(job),
        [
            (Operation::ReduceScatter, Over::Tensor, 64, 1),
            (Operation::AllGather, Over::Tensor, 64, 1),
            (Operation::AllGather, Over::DataContext, 2048, 1),
            (Operation::AllGather, Over::ExpertData, 512, 1),
            (Operation::AllToAll, Over::Expert, 256, 2),
            (Operation::Pipeline, Over::Pipeline, 4096, 24),
        ]
    );
    assert_eq!(job.compute_ns, 9 + 60);
}

#[test]
fn what_is_wrong_with_a_simai_file_is_said_by_line() {
    for (from, to, said) in [
        ("\n4\n", "\n5\n", "5 layers are announced and 4"),
        (
            "ALLTOALL_EP\t256\t1\tALL",
            "ALLTOSOME\t256\t1\tALL",
            "line 5: field 4 is `ALLTOSOME`",
        ),
        ("\t2048\t", "\tmany\t", "line 3: field 11"),
        ("all_gpus: 64", "all_gpus: 63", "line 1: `all_gpus` is 63"),
        ("all_gpus: 64", "gpus: 64", "no `all_gpus"),
        ("ep: 4", "ep: 3", "`ep` is 3"),
        ("grad_gather\t-1", "grad_gather", "line 3: field"),
    ] {
        let error = import(
            TraceFormat::Simai,
            SIMAI.replace(from, to).as_bytes(),
            &hints(),
        )
        .unwrap_err();
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
}

const AICB: &str = "\
[ pp_stage0: [rank0, rank1] ]
comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
CommType.all_reduce,CommGroup.dp_group,8,8,init.model_setup,None,None,,None,None,None,1
CommType.epoch_end,None,None,0,,None,None,,None,None,None,1
CommType.broadcast,CommGroup.tp_group,2,40,forward_step,None,0,,None,None,None,1
CommType.all_reduce,CommGroup.tp_group,2,33554432,forward.MegatronRowLinear,None,None,,None,None,None,1
CommType.all_reduce,CommGroup.tp_group,2,33554432,forward.MegatronRowLinear,None,None,,None,None,None,1
CommType.isend,CommGroup.pp_group,4,1024,forward_step,1,None,,None,None,None,1
CommType.reduce_scatter,CommGroup.dp_group,8,65536,step,None,None,,None,None,None,1
CommType.epoch_end,None,None,0,,None,None,,None,None,None,1
";

#[test]
fn aicb_files_become_exchanges_of_one_iteration() {
    assert_eq!(TraceFormat::guess(AICB.as_bytes()), TraceFormat::Aicb);
    let imported = import(TraceFormat::Aicb, AICB.as_bytes(), &hints()).unwrap();
    assert_eq!(imported.workload.grid.world_size(), 2 * 8 * 4);
    assert_eq!(
        found(&imported.workload),
        [
            (Operation::AllReduce, Over::Tensor, 33_554_432, 2),
            (Operation::ReduceScatter, Over::DataContext, 65536, 1),
            (Operation::Pipeline, Over::Pipeline, 1024, 1),
        ]
    );
    assert!(
        imported.notes[0].contains("broadcast over tp"),
        "{:?}",
        imported.notes
    );
    let wrong = AICB.replace("dp_group,8,65536", "dp_group,9,65536");
    let error = import(TraceFormat::Aicb, wrong.as_bytes(), &hints()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("line 9: dp_group has 9 ranks here and 8"),
        "{error}"
    );
}

/// A message as traces are written by others, field by field.
fn node(kind: u8, attributes: &[(&str, u64)], group: &str) -> Vec<u8> {
    let mut body = vec![0x18, kind];
    let mut attribute = |name: &str, value: Vec<u8>| {
        let mut inner = vec![0x0a, name.len() as u8];
        inner.extend(name.bytes());
        inner.extend(value);
        body.extend([0x52, inner.len() as u8]);
        body.extend(inner);
    };
    for (name, number) in attributes {
        let mut value = vec![0x48];
        prost::encoding::encode_varint(*number, &mut value);
        attribute(name, value);
    }
    let mut value = vec![0xea, 0x01, group.len() as u8];
    value.extend(group.bytes());
    attribute("pg_name", value);
    let mut message = Vec::new();
    prost::encoding::encode_varint(body.len() as u64, &mut message);
    message.extend(body);
    message
}

#[test]
fn chakra_traces_become_exchanges() {
    let metadata = String::from("0.0.4").encode_length_delimited_to_vec();
    let mut trace = metadata;
    trace.extend(node(7, &[("comm_type", 0), ("comm_size", 1 << 20)], "0"));
    trace.extend(node(7, &[("comm_type", 7), ("comm_size", 300)], "1"));
    trace.extend(node(7, &[("comm_type", 5), ("comm_size", 300)], "1"));
    trace.extend(node(4, &[], ""));
    let imported = import(TraceFormat::Chakra, &trace, &hints()).unwrap();
    assert_eq!(
        found(&imported.workload),
        [
            (Operation::AllReduce, Over::World, 1 << 20, 1),
            (Operation::ReduceScatter, Over::Tensor, 300, 1),
        ]
    );
    assert_eq!(imported.notes.len(), 1);
    let cut = import(TraceFormat::Chakra, &trace[..trace.len() - 3], &hints()).unwrap_err();
    assert!(cut.to_string().contains("record 4"), "{cut}");
}

/// As Chakra's jsonizer writes a trace: objects without anything between them.
const JSONIZED: &str = r#"{
  "version": "0.0.4"
}{
  "id": "1",
  "name": "nccl:all_reduce {}",
  "type": "COMM_COLL_NODE",
  "attr": [
    {"name": "is_cpu_op", "boolVal": false},
    {"name": "comm_type", "int64Val": "0"},
    {"name": "comm_size", "int64Val": "1048576"},
    {"name": "pg_name", "stringVal": "0"}
  ]
}{
  "id": "2",
  "name": "scatter",
  "type": "COMM_COLL_NODE",
  "attr": [
    {"name": "comm_type", "stringVal": "REDUCE_SCATTER"},
    {"name": "comm_size", "uint64Val": "300"},
    {"name": "pg_name", "stringVal": "1"}
  ]
}{
  "id": "3",
  "name": "gemm",
  "type": "COMP_NODE",
  "durationMicros": "7"
}"#;

/// As its feeder reads one.
const GRAPH: &str = r#"{"workload_graph": [
  {"Id": 1, "Name": "a", "NodeType": 7, "comm_type": 0, "comm_size": 1048576, "data_deps": []},
  {"Id": 2, "Name": "b", "NodeType": 7, "comm_type": 7, "comm_size": 300, "comm_group": "1"},
  {"Id": 3, "Name": "c", "NodeType": 4, "runtime": 7}
]}"#;

#[test]
fn chakra_traces_may_be_json() {
    for text in [JSONIZED, GRAPH] {
        assert_eq!(TraceFormat::guess(text.as_bytes()), TraceFormat::Chakra);
        let imported = import(TraceFormat::Chakra, text.as_bytes(), &hints()).unwrap();
        assert_eq!(
            found(&imported.workload),
            [
                (Operation::AllReduce, Over::World, 1 << 20, 1),
                (Operation::ReduceScatter, Over::Tensor, 300, 1),
            ]
        );
        assert_eq!(imported.workload.compute_ns, 7_000);
    }
    for (from, to, said) in [
        ("COMP_NODE", "COMM_NODE", "line 22: `type` is `COMM_NODE`"),
        (
            "\"7\"\n}",
            "\"7\"\n",
            "line 22: the object that begins here does not end",
        ),
        (
            "}{\n  \"id\": \"2\"",
            "} x {\n  \"id\": \"2\"",
            "line 13: `x` between two objects",
        ),
        ("\"name\": \"gemm\",", "\"name\": \"gemm\"", "line 22: "),
    ] {
        assert_eq!(JSONIZED.matches(from).count(), 1, "{from}");
        let text = JSONIZED.replace(from, to);
        let error = import(TraceFormat::Chakra, text.as_bytes(), &hints()).unwrap_err();
        assert!(error.to_string().starts_with(said), "{said}: {error}");
    }
}

#[test]
fn aicb_files_without_sizes_take_those_that_are_given() {
    let text = "comm_type,comm_group,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n\
                CommType.all_gather,CommGroup.dp_group,4096,test_step,None,None,,None,None,None,1\n\
                CommType.epoch_end,None,0,,None,None,,None,None,None,1\n";
    let imported = import(TraceFormat::Aicb, text.as_bytes(), &hints()).unwrap();
    assert_eq!(
        found(&imported.workload),
        [(Operation::AllGather, Over::DataContext, 4096, 1)]
    );
    assert_eq!(imported.workload.grid.world_size(), 16);
    let short = text.replace("CommGroup.dp_group,4096", "CommGroup.dp_group,many");
    let error = import(TraceFormat::Aicb, short.as_bytes(), &hints()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("line 2: `msg_size` should be a number"),
        "{error}"
    );
}

#[test]
fn an_imported_job_survives_its_file() {
    for (format, bytes) in [(TraceFormat::Simai, SIMAI), (TraceFormat::Aicb, AICB)] {
        let job = import(format, bytes.as_bytes(), &hints()).unwrap().workload;
        let text = job.to_yaml();
        assert_eq!(
            Workload::parse("written.yaml", &text).unwrap(),
            job,
            "{text}"
        );
    }
}
