//! Named groups of hosts: those that package managers load packages from.
//!
//! A group holds the hosts of reading only. Hosts where packages are published are not in it, but some registries take
//! uploads on the host that they serve packages from (npm, crates.io), and every request carries a path and headers: an
//! allowed registry can carry data out.

/// A name for hosts that are switched on together, each on ports 80 and 443.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostGroup {
    pub name: &'static str,
    pub hosts: &'static [&'static str],
}

/// Cargo: the sparse index, the archives of crates, and the site that older versions load archives through.
pub const REGISTRY_CARGO: HostGroup =
    HostGroup { name: "registry:cargo", hosts: &["index.crates.io", "static.crates.io", "crates.io"] };

/// npm, pnpm and yarn: the registry, and the name under which yarn reaches it.
pub const REGISTRY_NPM: HostGroup =
    HostGroup { name: "registry:npm", hosts: &["registry.npmjs.org", "registry.yarnpkg.com"] };

/// pip, uv and poetry: the index, and the files.
pub const REGISTRY_PYPI: HostGroup =
    HostGroup { name: "registry:pypi", hosts: &["pypi.org", "files.pythonhosted.org"] };

/// Go: the module mirror, and the checksum database. Modules that are loaded from their own hosts (`GOPROXY=direct`) are not
/// covered.
pub const REGISTRY_GO: HostGroup =
    HostGroup { name: "registry:go", hosts: &["proxy.golang.org", "sum.golang.org"] };

/// Maven and Gradle: the central repository under both of its names.
pub const REGISTRY_MAVEN: HostGroup =
    HostGroup { name: "registry:maven", hosts: &["repo.maven.apache.org", "repo1.maven.org"] };

/// apt on Debian: packages, and security updates.
pub const REGISTRY_DEBIAN: HostGroup =
    HostGroup { name: "registry:debian", hosts: &["deb.debian.org", "security.debian.org"] };

/// All groups that a configuration may name.
pub const HOST_GROUPS: [HostGroup; 6] =
    [REGISTRY_CARGO, REGISTRY_NPM, REGISTRY_PYPI, REGISTRY_GO, REGISTRY_MAVEN, REGISTRY_DEBIAN];
