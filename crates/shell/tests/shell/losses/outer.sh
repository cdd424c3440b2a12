# Runs a test binary over a throw-away overlay of this machine, in mount, process and network namespaces of its own,
# as a user without rights outside. Prints what differs afterwards outside of the workspaces.
# $1: folder of the overlay; $2: binary; $3: its test; $4: `root` to be root inside a user namespace; $5: the lines.
set -eu
place=$1 binary=$2 test=$3 as=$4 lines=$5
mount -t tmpfs -o size=1g,mode=755 tmpfs "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
root=$place/root
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
  : >"$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/shm" "$root/dev/pts"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o size=1g,mode=1777 tmpfs "$root/tmp"
# Targets that the user of the lines may change, so that a hole would show.
losses=$root/srv/lathe-losses
mkdir -p "$losses/home/.config" "$losses/home/project" "$losses/precious" "$losses/worlds"
for name in home/.profile home/.config/tool home/project/main.c precious/file precious/other; do
  echo "content of $name" >"$losses/$name"
done
cp "$binary" "$losses/tests"
cp "$lines" "$losses/lines"
chmod 755 "$losses" "$losses/tests"
chown -R 65533:65533 "$losses"

state() {
  cd "$place/upper"
  find . -path ./srv/lathe-losses/worlds/\* -prune -o ! -type f ! -type d -printf '%p %y %m %U %l\n' \
    -o -type d ! -path ./srv/lathe-losses/worlds -printf '%p d %m %U\n' -o -type f -printf '%p f %m %U %s ' -exec cksum {} \; | sort
  cd /
}

state >"$place/before"
export root test as
unshare --mount --pid --fork --kill-child sh -eu -c '
  mount -t proc proc "$root/proc"
  mkdir "$root/tmp/old"
  cd "$root"
  pivot_root . tmp/old
  umount -l /tmp/old
  rmdir /tmp/old
  export LATHE_TEST_LOSSES=/srv/lathe-losses/lines HOME=/srv/lathe-losses/home
  run="setpriv --reuid 65533 --regid 65533 --clear-groups"
  [ "$as" != root ] || run="$run unshare --user --map-root-user --mount"
  exec $run /srv/lathe-losses/tests --exact "$test" --nocapture
' && echo "the lines ran" || echo "the lines did not run"
state >"$place/after"
diff "$place/before" "$place/after" && echo "nothing differs"
