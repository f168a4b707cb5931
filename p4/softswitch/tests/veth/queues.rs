//! Rates and depths, at the start and while packets flow; the figures that tell of them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use crate::net::Net;
use crate::process::{Switch, free_address};

/// Sends frames from one side to the other, at once; how many arrived, and the seconds between
/// the first and the last. `None` without python3.
fn burst(net: &Net, frames: usize) -> Option<(usize, f64)> {
    let receiver = "import socket,time\n\
        s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,socket.htons(0x88b5))\n\
        s.bind(('eth0',0x88b5))\ns.settimeout(1.5)\nprint('ready',flush=True)\nt=[]\n\
        try:\n while True:\n  s.recv(2000)\n  t.append(time.time())\n\
        except socket.timeout: pass\n\
        print(len(t),t[-1]-t[0] if t else 0)";
    let sender = format!(
        "import socket\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('eth0',0))\n\
         for i in range({frames}): s.send(bytes([2,0,0,0,0,2,2,0,0,0,0,1,0x88,0xb5])+bytes(86))"
    );
    let mut receiving = net
        .command("b", "python3")
        .args(["-c", receiver])
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut ready = [0; 6];
    receiving.stdout.as_mut()?.read_exact(&mut ready).ok()?;
    let sent = net.command("a", "python3").args(["-c", &sender]).output();
    assert!(sent.unwrap().status.success());
    let done = receiving.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let mut words = text.split_whitespace();
    let count = words.next()?.parse().unwrap();
    Some((count, words.next()?.parse().unwrap()))
}

#[test]
#[ignore = "needs root and network namespaces"]
fn rates_and_depths_hold_and_change() {
    let net = Net::new("q");
    let metrics = free_address();
    let options = [
        "--queue-rate",
        "2:100pps",
        "--queue-depth",
        "30",
        "--metrics",
        &metrics,
    ];
    let switch = Switch::between(&net, &options);
    switch.connect_sides();
    let Some((count, took)) = burst(&net, 50) else {
        println!("skipped: needs python3");
        return;
    };
    // One leaves at once, thirty wait; a few more may leave while the rest arrives.
    assert!((31..40).contains(&count), "{count} of 50 fit");
    let expected = (count - 1) as f64 / 100.0;
    assert!((took - expected).abs() < 0.15, "{count} took {took} s");

    let said = switch.ask("queue set --port 2 --rate none --depth 200 --format json");
    assert!(said.status.success(), "{said:?}");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(text.contains("\"rate\": \"none\"") && text.contains("\"depth_packets\": 200"));
    let (count, took) = burst(&net, 50).unwrap();
    assert_eq!(count, 50);
    assert!(took < 0.3, "{took} s");

    // 100 bytes at 80 kbit/s take 10 ms, whatever the queue.
    assert!(
        switch
            .ask("queue set --port 2 --port-rate 80kbit")
            .status
            .success()
    );
    let (count, took) = burst(&net, 50).unwrap();
    assert_eq!(count, 50);
    assert!((0.44..0.6).contains(&took), "{took} s");

    let ports = switch.ask("port show");
    let ports = String::from_utf8_lossy(&ports.stdout).into_owned();
    assert!(
        ports.contains("80kbit") && ports.contains(&net.port("a")),
        "{ports}"
    );
    let refused = switch.ask("queue set --port 2 --queue 5 --rate 1mbit");
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("--priority-queues"), "{refused}");
    check_metrics(&metrics);
    switch.stop("-TERM");
}

fn check_metrics(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let value = |start: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no {start} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("meridian_port_received_packets_total{port=\"1\"") >= 150);
    assert!(value("meridian_queue_drops_total{port=\"2\",queue=\"0\"}") >= 10);
    assert_eq!(value("meridian_drops_total{reason=\"queue_full\"}"), {
        value("meridian_queue_drops_total{port=\"2\",queue=\"0\"}")
    });
    assert_eq!(
        value("meridian_rpcs_total{method=\"/p4.v1.P4Runtime/Write\"}"),
        1
    );
    assert_eq!(value("meridian_table_entries{table=\"Pipe.l2\"}"), 2);
    assert_eq!(value("meridian_port_up{port=\"2\""), 1);
}
