//! A sandbox's limits, checked, as Docker takes them.

use atoll_engine::{Error, Limits, Result};
use atoll_types::quantity::Size;
use bollard::models::SystemInfo;

use crate::config::{Config, Weakness};

/// Below this the runtime itself does not come up: it starts inside the limit.
const LEAST_MEMORY: Size = Size(16 << 20);
const LEAST_PIDS: u32 = 4;
const LEAST_FILES: u32 = 16;
const LEAST_DISK: Size = Size(1 << 20);
const LEAST_CPUS: f64 = 0.01;

/// What the agent and its keepers have on top of the guests' processes.
const AGENT_PIDS: u32 = 32;

/// Every bound of one sandbox.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) memory: Option<i64>,
    pub(crate) pids: Option<i64>,
    pub(crate) nano_cpus: Option<i64>,
    /// Of a guest's process.
    pub(crate) open_files: Option<u64>,
    /// Of all writable places together.
    pub(crate) disk: u64,
}

/// Refuses what is too small to work and what this daemon cannot enforce.
pub(crate) fn bounds(limits: &Limits, info: &SystemInfo, config: &Config) -> Result<Bounds> {
    least("memory", limits.memory, LEAST_MEMORY)?;
    least("pids", limits.pids, LEAST_PIDS)?;
    least("open_files", limits.open_files, LEAST_FILES)?;
    least("disk", limits.disk, LEAST_DISK)?;
    if let Some(cpus) = limits.cpus
        && !(cpus.is_finite() && cpus >= LEAST_CPUS)
    {
        return Err(Error::invalid(format!("`limits.cpus` is at least {LEAST_CPUS}")));
    }
    needs("memory", limits.memory.is_some(), info.memory_limit)?;
    needs("pids", limits.pids.is_some(), info.pids_limit)?;
    needs("cpus", limits.cpus.is_some(), info.cpu_cfs_quota)?;
    let memory = limits.memory.map(|size| size.0);
    let total = u64::try_from(info.mem_total.unwrap_or_default()).unwrap_or_default();
    // Files are kept in memory: without a limit of their own they may have half of it.
    let disk = limits.disk.map_or_else(|| memory.unwrap_or(total) / 2, |size| size.0);
    let unless = |weakness, limit: Option<i64>| limit.filter(|_| !config.weak(weakness));
    Ok(Bounds {
        memory: unless(Weakness::Memory, memory.map(signed)),
        pids: unless(
            Weakness::Pids,
            limits.pids.map(|pids| i64::from(pids.saturating_add(AGENT_PIDS))),
        ),
        nano_cpus: unless(Weakness::Cpus, limits.cpus.map(nanos)),
        open_files: limits.open_files.map(u64::from),
        disk: if config.weak(Weakness::Disk) { total } else { disk },
    })
}

fn least<T: Copy + PartialOrd + std::fmt::Display>(
    name: &str,
    asked: Option<T>,
    least: T,
) -> Result<()> {
    match asked {
        Some(asked) if asked < least => {
            Err(Error::invalid(format!("`limits.{name}` is at least {least}")))
        }
        _ => Ok(()),
    }
}

/// A daemon that does not say can.
fn needs(name: &str, asked: bool, can: Option<bool>) -> Result<()> {
    if asked && can == Some(false) {
        return Err(Error::unsupported(format!("this Docker daemon cannot limit {name}")));
    }
    Ok(())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "clamped before")]
fn nanos(cpus: f64) -> i64 {
    (cpus * 1e9).clamp(1e7, 1e15) as i64
}

#[cfg(test)]
mod tests {
    use atoll_engine::ErrorKind;

    use super::*;

    fn bounded(limits: &Limits, info: &SystemInfo) -> Result<Bounds> {
        bounds(limits, info, &Config::new("/nowhere"))
    }

    #[test]
    fn a_limit_too_small_to_work_is_invalid() {
        for limits in [
            Limits { memory: Some(Size(1 << 20)), ..Limits::default() },
            Limits { pids: Some(0), ..Limits::default() },
            Limits { open_files: Some(3), ..Limits::default() },
            Limits { disk: Some(Size(0)), ..Limits::default() },
            Limits { cpus: Some(0.0), ..Limits::default() },
            Limits { cpus: Some(f64::NAN), ..Limits::default() },
        ] {
            let error = bounded(&limits, &SystemInfo::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{limits:?}");
        }
    }

    #[test]
    fn a_limit_the_daemon_does_not_enforce_is_unsupported() {
        let info = SystemInfo {
            memory_limit: Some(false),
            pids_limit: Some(false),
            cpu_cfs_quota: Some(false),
            ..SystemInfo::default()
        };
        for limits in [
            Limits { memory: Some(Size(1 << 30)), ..Limits::default() },
            Limits { pids: Some(100), ..Limits::default() },
            Limits { cpus: Some(1.0), ..Limits::default() },
        ] {
            let error = bounded(&limits, &info).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{limits:?}");
        }
    }

    #[test]
    fn what_is_limited_is_passed_on() {
        let limits = Limits {
            memory: Some(Size(64 << 20)),
            pids: Some(10),
            cpus: Some(0.5),
            ..Limits::default()
        };

        let bounds = bounded(&limits, &SystemInfo::default()).unwrap();

        assert_eq!(bounds.memory, Some(64 << 20));
        assert_eq!(bounds.pids, Some(42));
        assert_eq!(bounds.nano_cpus, Some(500_000_000));
        assert_eq!(bounds.disk, 32 << 20);
    }
}
