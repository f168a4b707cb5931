//! A program with one action, put together from its primitives.

/// A typed value.
pub(crate) fn hex(value: u64) -> String {
    format!(r#"{{"type":"hexstr","value":"{value:#x}"}}"#)
}

/// A negative one.
pub(crate) fn hex_minus(value: u64) -> String {
    format!(r#"{{"type":"hexstr","value":"-{value:#x}"}}"#)
}

/// A field of a header.
pub(crate) fn field(header: &str, field: &str) -> String {
    format!(r#"{{"type":"field","value":["{header}","{field}"]}}"#)
}

/// A header.
pub(crate) fn header(name: &str) -> String {
    format!(r#"{{"type":"header","value":"{name}"}}"#)
}

/// The stack.
pub(crate) fn stack() -> String {
    r#"{"type":"header_stack","value":"hs"}"#.to_owned()
}

/// An expression; `left` may be `null`.
pub(crate) fn op(op: &str, left: &str, right: &str) -> String {
    let inner = format!(r#"{{"op":"{op}","left":{left},"right":{right}}}"#);
    format!(r#"{{"type":"expression","value":{inner}}}"#)
}

/// A primitive.
pub(crate) fn call(name: &str, parameters: &[String]) -> String {
    format!(
        r#"{{"op":"{name}","parameters":[{}]}}"#,
        parameters.join(",")
    )
}

/// An assignment.
pub(crate) fn assign(to: &str, from: &str) -> String {
    call("assign", &[to.to_owned(), from.to_owned()])
}

/// The program: its parser takes a header `h` and, if the first byte is below
/// 0x80, four elements of the stack `hs`; the action runs in ingress; unions
/// `u` and `v` follow the stack when the packet leaves.
pub(crate) fn program(primitives: &[String]) -> String {
    let mut headers = vec![
        r#"{"name":"standard_metadata","id":0,"header_type":"std","metadata":true}"#.to_owned(),
        r#"{"name":"h","id":1,"header_type":"h_t"}"#.to_owned(),
    ];
    for i in 0..4 {
        let id = 2 + i;
        headers.push(format!(
            r#"{{"name":"hs[{i}]","id":{id},"header_type":"e_t"}}"#
        ));
    }
    for (i, name) in ["u.x", "u.y", "v.x", "v.y"].iter().enumerate() {
        let (id, kind) = (6 + i, if i % 2 == 0 { "e_t" } else { "y_t" });
        headers.push(format!(
            r#"{{"name":"{name}","id":{id},"header_type":"{kind}"}}"#
        ));
    }
    let extract = r#"{"op":"extract","parameters":[{"type":"stack","value":"hs"}]}"#;
    let extracts = [extract; 4].join(",");
    let (headers, body) = (headers.join(","), primitives.join(","));
    format!(
        r#"{{
"header_types":[
 {{"name":"std","id":0,"fields":[["ingress_port",9,false],["egress_spec",9,false],
  ["egress_port",9,false],["instance_type",32,false],["packet_length",32,false],
  ["parser_error",32,false],["_pad",5,false]]}},
 {{"name":"h_t","id":1,"fields":[["a",8,false],["b",8,false],["c",16,false],["s",32,true]]}},
 {{"name":"e_t","id":2,"fields":[["v",8,false]]}},
 {{"name":"y_t","id":3,"fields":[["v",16,false]]}}],
"headers":[{headers}],
"header_stacks":[{{"name":"hs","id":0,"header_type":"e_t","size":4,"header_ids":[2,3,4,5]}}],
"header_union_types":[{{"name":"u_t","id":0,"headers":[["x","e_t"],["y","y_t"]]}}],
"header_unions":[{{"name":"u","id":0,"union_type":"u_t","header_ids":[6,7]}},
 {{"name":"v","id":1,"union_type":"u_t","header_ids":[8,9]}}],
"errors":[["NoError",0],["PacketTooShort",1],["NoMatch",2],["StackOutOfBounds",3]],
"parsers":[{{"name":"parser","id":0,"init_state":"start","parse_states":[
 {{"name":"start","id":0,"parser_ops":[{{"op":"extract","parameters":[{{"type":"regular","value":"h"}}]}}],
  "transition_key":[{{"type":"field","value":["h","a"]}}],
  "transitions":[{{"type":"hexstr","value":"0x00","mask":"0x80","next_state":"more"}}]}},
 {{"name":"more","id":1,"parser_ops":[{extracts}],"transition_key":[],
  "transitions":[{{"type":"default","value":null,"mask":null,"next_state":null}}]}}]}}],
"deparsers":[{{"name":"deparser","id":0,
 "order":["h","hs[0]","hs[1]","hs[2]","hs[3]","u.x","u.y","v.x","v.y"]}}],
"actions":[{{"name":"act","id":0,"runtime_data":[],"primitives":[{body}]}}],
"pipelines":[{{"name":"ingress","id":0,"init_table":"act","tables":[],"conditionals":[],
  "action_calls":[{{"name":"act","id":0,"action_id":0,"next_node":null}}]}},
 {{"name":"egress","id":1,"init_table":null,"tables":[],"conditionals":[]}}]
}}"#
    )
}
