# Waits until its standard input ends, which it does with the test program, however that ends. Then
# ends every process in the daemon's control groups, and removes its mounts, groups and directory.
#
# Arguments: the group's name, the daemon's data, its directory.
trap '' HUP INT TERM
cat > /dev/null
group=$1 data=$2 place=$3

everyone() {
    find /sys/fs/cgroup/pids/"$group" /sys/fs/cgroup/"$group" -name cgroup.procs \
        -exec cat {} + 2> /dev/null
}
for round in $(seq 200); do
    pids=$(everyone)
    [ -n "$pids" ] || break
    kill -9 $pids 2> /dev/null
    sleep 0.05
done
# The innermost first.
for round in 1 2 3; do
    awk -v a="$data" -v b="$place" 'index($5, a "/") == 1 || index($5, b "/") == 1 { print $5 }' \
        /proc/self/mountinfo | sort -r | while read -r mount; do umount -l "$mount"; done
done
for try in $(seq 50); do
    find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2> /dev/null
    [ -n "$(find /sys/fs/cgroup -maxdepth 2 -name "$group")" ] || break
    sleep 0.05
done
rm -rf "$place"
