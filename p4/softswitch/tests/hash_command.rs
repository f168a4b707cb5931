//! `meridian-switch hash`, as a user calls it.

#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/hashes");

/// A running switch, ended when this goes.
struct Switch {
    process: Child,
    address: String,
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Switch {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let process = Command::new(env!("CARGO_BIN_EXE_meridian-switch"))
            .args(["--device-id", "1", "-L", "error"])
            .arg(format!("{FOLDER}/hashes.json"))
            .arg("--p4info")
            .arg(format!("{FOLDER}/hashes.p4info.txtpb"))
            .args(["--", "--grpc-server-addr", &address])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let switch = Switch { process, address };
        let start = Instant::now();
        while !switch.hash(&["show"]).status.success() {
            assert!(start.elapsed() < Duration::from_secs(20), "no switch");
            std::thread::sleep(Duration::from_millis(50));
        }
        switch
    }

    fn hash(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_meridian-switch"))
            .arg("hash")
            .args(words)
            .args(["--address", &self.address])
            .output()
            .unwrap()
    }

    fn printed(&self, words: &[&str]) -> String {
        let output = self.hash(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self.hash(words);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn hashes_are_shown_and_set() {
    let switch = Switch::start();
    let shown = switch.printed(&["show"]);
    assert!(
        shown.contains("calc_0") && shown.contains("0x4c11db7"),
        "{shown}"
    );
    let words = "set --name calc_2 --polynomial 0x1021 --init 65535 --xor-out 0xffff --reflect-in";
    let words: Vec<&str> = words.split(' ').collect();
    let set = switch.printed(&words);
    assert!(set.contains("0x1021") && set.contains("0xffff"), "{set}");
    let json = switch.printed(&["show", "--format", "json"]);
    let json: sonic_rs::Value = sonic_rs::from_str(&json).unwrap();
    let now = &json[1];
    assert_eq!(now["polynomial"], 0x1021);
    assert_eq!(now["init"], 0xffff);
    assert_eq!(now["reflect_in"], true);
    assert_eq!(now["reflect_out"], false);
    let again = switch.printed(&["set", "--name", "calc_2", "--standard"]);
    assert!(again.contains("0x8005"), "{again}");

    for (words, said) in [
        (&["set", "--polynomial", "1"][..], "calc_0, calc_2"),
        (
            &["set", "--name", "x", "--polynomial", "1"],
            "calc_0, calc_2",
        ),
        (
            &["set", "--name", "calc_2", "--polynomial", "0x11021"],
            "polynomial 0x11021 does not fit the 16 bits",
        ),
        (&["set", "--name", "calc_2", "--polynomial", "x"], "0x1021"),
        (&["set", "--name", "calc_2"], "--polynomial"),
    ] {
        let refused = switch.refused(words);
        assert!(refused.contains(said), "{words:?}: {refused}");
    }
}
