//! Ports that are no Ethernet interfaces: TUN interfaces and files.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::net::{Net, must_ip};
use crate::process::{Switch, binary};

/// Holds a TUN interface: a line of hexadecimal in is a packet out of it, and the next packet
/// into it is a line out.
const TUN: &str = "import fcntl,os,select,struct,sys\n\
    f=os.open('/dev/net/tun',os.O_RDWR)\n\
    fcntl.ioctl(f,0x400454ca,struct.pack('16sH',sys.argv[1].encode(),0x1001))\n\
    print('ready',flush=True)\n\
    for line in sys.stdin:\n\
    \x20os.write(f,bytes.fromhex(line))\n\
    \x20while True:\n\
    \x20 r,_,_=select.select([f],[],[],3)\n\
    \x20 p=os.read(f,2000) if r else b''\n\
    \x20 if not p or p[0]>>4==4: break\n\
    \x20print(p.hex(),flush=True)";

#[test]
#[ignore = "needs root and network namespaces"]
fn a_tun_interface_is_a_port() {
    let net = Net::new("t");
    let name = net.port("t");
    let Ok(mut tun) = Command::new("python3")
        .args(["-c", TUN, &name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
    else {
        println!("skipped: needs python3");
        return;
    };
    let mut ready = [0; 6];
    let mut lines = tun.stdout.take().unwrap();
    if lines.read_exact(&mut ready).is_err() {
        println!("skipped: no TUN interfaces here");
        let _ = tun.wait();
        return;
    }
    must_ip(&format!("link set {name} up"));
    // Both ports are the TUN's and side b's; a packet without Ethernet turns back by its first
    // six bytes.
    let b = net.port("b");
    let switch = Switch::start(binary(), [&name, &b], &[]);
    let packet = "4500001c00000000401100000a0000010a000002000100020008000a";
    switch.forward(&[([0x45, 0, 0, 0x1c, 0, 0], 1)]);
    let stdin = tun.stdin.as_mut().unwrap();
    writeln!(stdin, "{packet}").unwrap();
    let mut line = vec![0; packet.len()];
    lines.read_exact(&mut line).unwrap();
    assert_eq!(String::from_utf8_lossy(&line), packet);
    drop(tun.stdin.take());
    let _ = tun.wait();
    std::thread::sleep(Duration::from_millis(300));
    let log = switch.stop("-INT");
    assert!(log.contains("up=false"), "the interface has gone: {log}");
}

/// A pcap file of frames, a microsecond apart.
fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for (number, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for word in [7, number as u32, len, len] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(frame);
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn files_are_ports() {
    let folder = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..200u8)
        .map(|n| {
            let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
            frame.extend_from_slice(&[n; 50]);
            frame
        })
        .collect();
    write_pcap(&folder.path().join("x_in.pcap"), &frames);
    write_pcap(&folder.path().join("y_in.pcap"), &[]);
    let mut command = binary();
    command.current_dir(folder.path());
    let switch = Switch::start(command, ["x", "y"], &["--use-files", "2"]);
    switch.connect_sides();
    std::thread::sleep(Duration::from_millis(3_500));
    switch.stop("-TERM");
    let out = std::fs::read(folder.path().join("y_out.pcap")).unwrap();
    let mut rest = &out[24..];
    let mut arrived = Vec::new();
    while rest.len() >= 16 {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        arrived.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    assert!(rest.is_empty());
    assert_eq!(arrived, frames);
}
