//! What a fabric must not leave behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use lab::mininet::{Lab, Plan};

/// Long enough for the runner to notice that its owner was killed, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Traces of a fabric that is, or was, up.
pub(crate) struct Traces {
    tag: String,
    namespaces: BTreeSet<PathBuf>,
}

impl Traces {
    /// Of a fabric that never got as far as to have namespaces.
    pub(crate) fn of_plan(plan: &Plan) -> Self {
        Self {
            tag: plan.tag.clone(),
            namespaces: BTreeSet::new(),
        }
    }

    /// Of a running fabric, its hosts' namespaces included.
    pub(crate) fn of_running(plan: &Plan) -> Self {
        let own = namespace(Path::new("/proc/self"));
        let namespaces: BTreeSet<PathBuf> = processes(&plan.tag)
            .iter()
            .filter_map(|process| namespace(process))
            .filter(|found| Some(found) != own.as_ref())
            .collect();
        assert_eq!(
            namespaces.len(),
            plan.hosts.len(),
            "one namespace per host while the fabric is up"
        );
        Self {
            tag: plan.tag.clone(),
            namespaces,
        }
    }

    /// Everything that is still there.
    fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = interfaces(&self.tag);
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        for process in entries.map(|entry| entry.path()) {
            let inside = namespace(&process).is_some_and(|found| self.namespaces.contains(&found));
            if inside || is_marked(&process, &self.tag) {
                let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
                left.push(format!("{} {}", process.display(), name.trim()));
            }
        }
        let folder = Path::new("/run/meridian").join(format!("mininet-{}", self.tag));
        if folder.exists() {
            left.push(folder.display().to_string());
        }
        left
    }

    /// Fails if something is left right now.
    pub(crate) fn assert_gone(&self) {
        assert_eq!(self.left(), Vec::<String>::new(), "left behind");
    }

    /// Fails if something is left after a while.
    pub(crate) fn assert_gone_soon(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.left().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.assert_gone();
    }
}

/// The interfaces of a fabric outside its hosts.
pub(crate) fn interfaces(tag: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir("/sys/class/net")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(&format!("{tag}-")))
        .collect();
    names.sort();
    names
}

/// The process that runs a fabric's Mininet.
pub(crate) fn runner_pid(lab: &Lab) -> i32 {
    let fabric = lab.plan().fabric.as_bytes();
    let found: Vec<i32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse().ok())
        .filter(|pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words
                .windows(2)
                .any(|pair| pair == [&b"meridian-mininet"[..], fabric])
        })
        .collect();
    assert_eq!(found.len(), 1, "one runner of {}", lab.plan().fabric);
    found[0]
}

/// Kills a process outright.
pub(crate) fn kill(pid: i32) {
    send(pid, libc::SIGKILL);
}

/// Sends a signal to a child.
pub(crate) fn signal(child: &Child, number: i32) {
    send(i32::try_from(child.id()).unwrap(), number);
}

#[allow(unsafe_code)]
fn send(pid: i32, number: i32) {
    // SAFETY: kill has no memory effects; the pid is of a process that this test started.
    let result = unsafe { libc::kill(pid, number) };
    assert_eq!(result, 0, "signal {number} to {pid}");
}

fn processes(tag: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .map(|entry| entry.path())
        .filter(|process| is_marked(process, tag))
        .collect()
}

fn is_marked(process: &Path, tag: &str) -> bool {
    let mark = format!("MERIDIAN_MININET={tag}");
    fs::read(process.join("environ")).is_ok_and(|environ| {
        environ
            .split(|byte| *byte == 0)
            .any(|word| word == mark.as_bytes())
    })
}

fn namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/net")).ok()
}
