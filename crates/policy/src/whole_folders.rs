//! Programs that take a folder with all that is in it, besides those that search it: they give it another name, mount
//! it, pack it or send it away.
//!
//! A denied file beneath such a folder would be reachable by its new name, or would be sent to another machine. This
//! counts for rules about paths alone, so that without such a rule nothing more is asked about.

use crate::guard::operands;
use crate::kinds;

/// Programs that give a folder another name, or show it at another place.
const RENAMES: [&str; 27] = [
    "rename",
    "rename.ul",
    "prename",
    "perl-rename",
    "file-rename",
    "mmv",
    "zmv",
    "qmv",
    "imv",
    "exch",
    "mount",
    "bindfs",
    "chroot",
    "pivot_root",
    "switch_root",
    "fuse-overlayfs",
    "unionfs",
    "unionfs-fuse",
    "mergerfs",
    "mhddfs",
    "bwrap",
    "proot",
    "fakechroot",
    "systemd-nspawn",
    "nsenter",
    "unshare",
    "firejail",
];

/// Programs that pack a folder, or send or show it to others.
const SENDS: [&str; 70] = [
    "rclone",
    "aws",
    "gsutil",
    "gcloud",
    "az",
    "azcopy",
    "s3cmd",
    "s4cmd",
    "s5cmd",
    "mc",
    "b2",
    "swift",
    "oci",
    "doctl",
    "restic",
    "rustic",
    "borg",
    "kopia",
    "duplicity",
    "duplicacy",
    "bup",
    "tarsnap",
    "attic",
    "dar",
    "rdiff-backup",
    "unison",
    "lftp",
    "ncftpput",
    "croc",
    "wormhole",
    "magic-wormhole",
    "ffsend",
    "ipfs",
    "mktorrent",
    "transmission-create",
    "mksquashfs",
    "gensquashfs",
    "genisoimage",
    "mkisofs",
    "xorriso",
    "xorrisofs",
    "mkfs.erofs",
    "mkfs.ubifs",
    "genext2fs",
    "pax",
    "star",
    "afio",
    "gtar",
    "lrztar",
    "zpaq",
    "rar",
    "arj",
    "lha",
    "jar",
    "makeself",
    "dpkg-deb",
    "fpm",
    "vercel",
    "netlify",
    "surge",
    "firebase",
    "wrangler",
    "http-server",
    "serve",
    "live-server",
    "caddy",
    "darkhttpd",
    "miniserve",
    "dufs",
    "webfsd",
];

/// Programs of containers, which copy folders and mount them.
const CONTAINERS: [&str; 9] =
    ["docker", "podman", "nerdctl", "buildah", "kubectl", "oc", "lxc", "incus", "docker-compose"];

/// Builders, which fetch what they need and go through folders by themselves.
const BUILDERS: [&str; 34] = [
    "cargo", "go", "npm", "pnpm", "yarn", "bun", "cnpm", "npx", "mvn", "mvnw", "mvnd", "gradle", "gradlew",
    "sbt", "dotnet", "stack", "cabal", "pip", "pip3", "uv", "uvx", "poetry", "pdm", "pipenv", "hatch", "rye",
    "pixi", "gem", "bundle", "composer", "mix", "git", "apt", "apt-get",
];

/// Calls of other languages that move, link, pack or go through a folder, or go into it.
const CALLS: [&str; 28] = [
    "rename",
    "os.replace",
    "move",
    "copytree",
    "copy_tree",
    "cp(",
    "cpSync",
    "cp_r",
    "archive",
    "tarfile",
    "zipfile",
    "walk",
    "listdir",
    "scandir",
    "iterdir",
    "readdir",
    "opendir",
    "glob",
    "Find.find",
    "Dir.",
    "chdir",
    "chroot",
    "mount",
    "symlink",
    "link(",
    "system",
    "spawn",
    "run(",
];

/// The words of a program that may be folders which it takes whole.
pub(crate) fn taken_folders<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    let all = || -> Vec<&'w str> {
        // `-v a:/b`, `--root=a`, `x::y`
        words.iter().flat_map(|word| word.split(['=', ':', ',']).chain([*word])).collect()
    };
    match name {
        _ if RENAMES.contains(&name) || SENDS.contains(&name) => all(),
        _ if CONTAINERS.contains(&name) && has(&["cp", "push", "file"]) => all(),
        _ if CONTAINERS.contains(&name) => mounted(words),
        "busybox" | "toybox" if has(&["httpd"]) => all(),
        "ruby" if words.iter().any(|word| word.starts_with("-run")) => all(),
        "php" if has(&["-S", "-t"]) => all(),
        _ if BUILDERS.contains(&name) => Vec::new(),
        _ if kinds::is_fetch(name) => operands(words),
        _ => Vec::new(),
    }
}

/// The folders that are mounted into a container: `-v a:/b`, `--mount type=bind,src=a,dst=/b`.
fn mounted<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let option = |word: &str| matches!(word, "-v" | "--volume" | "--mount");
    let next = words.windows(2).filter(|pair| option(pair[0])).map(|pair| pair[1]);
    let glued = words.iter().filter_map(|word| {
        ["--volume=", "--mount=", "-v"].iter().find_map(|option| word.strip_prefix(option))
    });
    let source = |word: &'w str| {
        let named = word
            .split(',')
            .find_map(|part| ["src=", "source="].iter().find_map(|key| part.strip_prefix(key)));
        named.or_else(|| word.split(':').next()).filter(|folder| !folder.is_empty())
    };
    next.chain(glued).filter_map(source).collect()
}

/// Names in the text of another language that may be folders which it takes whole.
pub(crate) fn folders_in_calls(text: &str) -> Vec<&str> {
    if !CALLS.iter().any(|call| text.contains(call)) {
        return Vec::new();
    }
    let parts = text.split(['\'', '"', '`']).enumerate().filter(|(index, _)| index % 2 == 1);
    parts
        .map(|(_, part)| part)
        .filter(|part| !part.is_empty() && !part.contains(char::is_whitespace))
        .collect()
}

/// Tells whether the texts of a language may have such calls.
pub(crate) fn has_calls(name: &str) -> bool {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        bare,
        "python"
            | "pypy"
            | "perl"
            | "ruby"
            | "node"
            | "nodejs"
            | "deno"
            | "bun"
            | "php"
            | "lua"
            | "luajit"
            | "tclsh"
    )
}
