//! What the figures were taken on.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    memory_mib: u64,
}

pub(crate) fn facts() -> Machine {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split(':').nth(1).unwrap_or_default().trim().to_owned()
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    Machine {
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        processor: field(&read("/proc/cpuinfo"), "model name"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_mib: memory.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
            / 1024,
    }
}
