//! The system calls that a jail refuses, as a seccomp program.
//!
//! It refuses what no build or test needs and what leads out of the other walls: new namespaces and mounts, tracing
//! and reading other processes, kernel interfaces with a history of escapes (`io_uring`, `bpf`, `userfaultfd`, key
//! rings), every family of sockets but unix and internet ones, typing into a terminal, and files that run with their
//! owner's rights. A call whose arguments are in memory cannot be judged: `clone3` and `openat2` answer that they do
//! not exist, and C libraries use the older calls. Foreign architectures and the x32 numbers end the process.
//!
//! Rejected: an allow-list. Every new release of a C library and of a language's runtime would break it.

use std::collections::BTreeMap;
use std::convert::TryInto as _;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};

use crate::WorkspaceError;

/// The network that the filter leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// The processes have a network of their own, which leads nowhere.
    Own,
    /// The processes share the network of the machine, so there must be no socket but unix ones.
    Refused,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that are refused with any arguments.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Calls that answer as on a kernel without them, so that programs use another way.
const ABSENT: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_fchmodat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// The flags of `clone` and `unshare` for new namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
/// The flag for a new time namespace, which `clone` does not have: there it is part of the signal.
const NEW_TIME: u64 = 0x80;

/// Requests to a terminal that type into it or paste the screen.
const TYPING: [u64; 2] = [libc::TIOCSTI, 0x541C];

/// A file with this bit runs with the rights of its owner or group.
const OWNERS_RIGHTS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// The filter, as the kernel reads it.
pub(super) fn filter(network: Network) -> Result<Vec<u8>, WorkspaceError> {
    let failed =
        |error: &dyn std::fmt::Display| WorkspaceError::Jail(format!("the filter of calls: {error}"));
    let refused = refused(network).map_err(|error| failed(&error))?;
    let absent: Rules = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
    let mut program = x32_guard();
    // The second program is reached only by the first one's calls that are not absent: each is a whole program, so
    // they are joined by making the end of the first one a fall into the second.
    let absent = compile(absent, libc::ENOSYS).map_err(|error| failed(&error))?;
    let refused = compile(refused, libc::EPERM).map_err(|error| failed(&error))?;
    program.extend(falling_through(absent));
    program.extend(refused);
    Ok(program.iter().flat_map(bytes_of).collect())
}

fn bytes_of(instruction: &sock_filter) -> [u8; 8] {
    let [code, code_high] = instruction.code.to_ne_bytes();
    let [k0, k1, k2, k3] = instruction.k.to_ne_bytes();
    [code, code_high, instruction.jt, instruction.jf, k0, k1, k2, k3]
}

const LOAD: u16 = 0x20;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const KILL_PROCESS: u32 = 0x8000_0000;
const ALLOW: u32 = 0x7fff_0000;

/// The x32 numbers have the architecture of the plain ones, so rules about those do not meet them.
fn x32_guard() -> BpfProgram {
    if cfg!(not(target_arch = "x86_64")) {
        return Vec::new();
    }
    vec![
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: 0x4000_0000 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: KILL_PROCESS },
    ]
}

/// The program with its allowing end replaced by a step to whatever follows.
fn falling_through(mut program: BpfProgram) -> BpfProgram {
    let end = program.len() - 1;
    for (at, instruction) in program.iter_mut().enumerate() {
        if instruction.code == RETURN && instruction.k == ALLOW {
            // A jump of `k` instructions ahead, behind the end.
            *instruction =
                sock_filter { code: 0x05, jt: 0, jf: 0, k: u32::try_from(end - at).unwrap_or(u32::MAX) };
        }
    }
    program
}

fn compile(rules: Rules, error: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?.try_into()
}

fn refused(network: Network) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    let has =
        |argument: u8, bits: u64| SeccompCondition::new(argument, Width::Qword, Op::MaskedEq(bits), bits);
    let is = |argument: u8, value: u64| SeccompCondition::new(argument, Width::Dword, Op::Eq, value);
    let is_not = |argument: u8, value: u64| SeccompCondition::new(argument, Width::Dword, Op::Ne, value);
    let mut refuse = |call: libc::c_long, conditions: Vec<SeccompCondition>| {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok::<(), seccompiler::BackendError>(())
    };
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        refuse(libc::SYS_clone, vec![has(0, flag)?])?;
        refuse(libc::SYS_unshare, vec![has(0, flag)?])?;
    }
    refuse(libc::SYS_unshare, vec![has(0, NEW_TIME)?])?;
    let families: &[libc::c_int] = match network {
        Network::Own => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6],
        Network::Refused => &[libc::AF_UNIX],
    };
    let others = |families: &[libc::c_int]| {
        families
            .iter()
            .map(|family| is_not(0, u64::from(family.unsigned_abs())))
            .collect::<Result<Vec<_>, _>>()
    };
    refuse(libc::SYS_socket, others(families)?)?;
    refuse(libc::SYS_socketpair, others(&[libc::AF_UNIX])?)?;
    for request in TYPING {
        refuse(libc::SYS_ioctl, vec![is(1, request)?])?;
    }
    for bit in OWNERS_RIGHTS {
        refuse(libc::SYS_fchmod, vec![has(1, bit)?])?;
        refuse(libc::SYS_fchmodat, vec![has(2, bit)?])?;
        refuse(libc::SYS_mknodat, vec![has(2, bit)?])?;
        // Without O_CREAT the mode is whatever was in the register.
        refuse(libc::SYS_openat, vec![has(2, libc::O_CREAT as u64)?, has(3, bit)?])?;
        refuse(libc::SYS_openat, vec![has(2, libc::O_TMPFILE as u64)?, has(3, bit)?])?;
        #[cfg(target_arch = "x86_64")]
        {
            refuse(libc::SYS_chmod, vec![has(1, bit)?])?;
            refuse(libc::SYS_mknod, vec![has(1, bit)?])?;
            refuse(libc::SYS_creat, vec![has(1, bit)?])?;
            refuse(libc::SYS_open, vec![has(1, libc::O_CREAT as u64)?, has(2, bit)?])?;
            refuse(libc::SYS_open, vec![has(1, libc::O_TMPFILE as u64)?, has(2, bit)?])?;
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_for_both_networks_and_fits_into_the_kernel() {
        for network in [Network::Own, Network::Refused] {
            let program = filter(network).unwrap();
            assert_eq!(program.len() % 8, 0);
            // The most that a kernel takes is 4096 instructions.
            assert!(program.len() / 8 < 1024, "{}", program.len() / 8);
        }
    }

    #[test]
    fn the_first_program_allows_nothing_by_itself() {
        let absent: Rules = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
        let program = falling_through(compile(absent, libc::ENOSYS).unwrap());
        let allows = |instruction: &&sock_filter| instruction.code == RETURN && instruction.k == ALLOW;
        assert_eq!(program.iter().filter(allows).count(), 0);
    }
}
