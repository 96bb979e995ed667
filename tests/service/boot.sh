# Boots systemd in namespaces and a cgroup of its own: on a copy of this machine's files that is gone afterwards, with
# nothing of the real /run, /tmp, /var/tmp and /var/log. `outer FOLDER PROGRAM` does not return; `clean FOLDER` ends it.
set -eu
base=$2

case $1 in
outer)
    mounted=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
    group=$mounted$(sed -n 's/^0:://p' /proc/self/cgroup)/siftd-test-$$
    mkdir "$group"
    echo "$group" > "$base/group"
    echo $$ > "$group/cgroup.procs"
    exec unshare --mount --pid --fork --kill-child --uts --ipc --cgroup --net --propagation private bash "$0" inner "$base" "$3"
    ;;
clean)
    group=$(cat "$base/group")
    # Where it can be, all at once; else its first process takes all with it.
    [ ! -e "$group/cgroup.kill" ] || echo 1 > "$group/cgroup.kill"
    for _ in $(seq 100); do
        find "$group" -depth -type d -exec rmdir {} + 2> /dev/null || true
        [ -d "$group" ] || exit 0
        sleep 0.1
    done
    exit 1
    ;;
esac

mkdir "$base/root"
mount -t tmpfs -o mode=755 tmpfs "$base/root"
mkdir "$base/root/upper" "$base/root/work" "$base/root/new"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/root/upper,workdir=$base/root/work" "$base/root/new"
install -m 755 "$3" "$base/root/new/siftd-under-test"
cd "$base/root/new"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for name in null zero full random urandom tty; do
    touch "dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
for folder in dev/shm run tmp var/tmp var/log; do mount -t tmpfs -o mode=1777 tmpfs "$folder"; done
# What a siftd of this machine remembers is no matter of the test.
rm -rf var/lib/siftd
chmod 755 run var/log
# What would reach for the real machine, or has nothing to do here.
for unit in systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service systemd-tmpfiles-clean.service systemd-tmpfiles-clean.timer \
    systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udev-trigger.service systemd-logind.service \
    systemd-resolved.service systemd-timesyncd.service systemd-networkd.service systemd-random-seed.service systemd-update-utmp.service \
    systemd-remount-fs.service systemd-sysctl.service systemd-modules-load.service; do
    ln -sf /dev/null "etc/systemd/system/$unit"
done
printf '[Unit]\nDescription=What a test needs\nDefaultDependencies=no\nWants=systemd-journald.service\n' > etc/systemd/system/siftd-test.target
mkdir -p mnt
pivot_root . mnt
umount -l /mnt
exec env -i container=lxc PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=siftd-test.target --log-target=null --show-status=no
