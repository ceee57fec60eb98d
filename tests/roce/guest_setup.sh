# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
#
# In the guest, with the host's files as root: makes the NICs, runs the command, and tells its status.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
source /run/job/settings

finish() {
  echo "$1" >/run/job/status
  sync
  /bin/busybox poweroff -f
}
stop() {
  echo "guest: $*"
  finish 125
}

mount_all() {
  local number=0 directory
  mkdir -p /lib/modules
  rm -rf "/lib/modules/$version"
  ln -s "$modules/$version" "/lib/modules/$version"
  for directory in "${writable[@]}"; do
    mkdir -p "$directory"
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=mmap rw$number "$directory" ||
      stop "no $directory"
    number=$((number + 1))
  done
}

# All devices are in the first network namespace: Soft-RoCE of these kernels works in no other. A
# packet to a sibling's address leaves by the device's own port, and accept_local lets it in.
make_links() {
  local i where setting
  for where in all default; do
    for setting in accept_local=1 rp_filter=0 arp_ignore=1 arp_announce=2; do
      echo "${setting#*=}" >"/proc/sys/net/ipv4/conf/$where/${setting%=*}"
    done
  done
  # Two ports are the ends of one cable; more are on a bridge.
  if ((num_nics == 2)); then
    ip link add re0 type veth peer name re1
  else
    ip link add br0 type bridge
    ip link set br0 mtu 4200 up
    for ((i = 0; i < num_nics; i++)); do
      ip link add "re$i" type veth peer name "sw$i"
      ip link set "sw$i" mtu 4200 master br0 up
    done
  fi
}

# Room for packets of 4096 bytes and their heads. Nobody asks for a neighbour's address: no wait for
# an answer that a lossy wire may lose.
make_nics() {
  local i j
  for ((i = 0; i < num_nics; i++)); do
    ip link set "re$i" address "$(address_of "$i")" mtu 4200
    echo 0 >"/proc/sys/net/ipv4/conf/re$i/rp_filter"
    echo 1 >"/proc/sys/net/ipv4/conf/re$i/accept_local"
    ip addr add "10.77.0.$((i + 1))/24" dev "re$i"
    echo 0 >"/proc/sys/net/ipv6/conf/re$i/accept_dad"
    ip link set "re$i" up
  done
  for ((i = 0; i < num_nics; i++)); do
    for ((j = 0; j < num_nics; j++)); do
      ((i == j)) || ip neigh replace "10.77.0.$((j + 1))" lladdr "$(address_of "$j")" dev "re$i" nud permanent
    done
    rdma link add "rxe$i" type rxe netdev "re$i" || stop "no rxe$i"
  done
}
address_of() { printf '02:77:00:00:00:%02x' "$(($1 + 1))"; }

wait_for_addresses() {
  local i turn
  for ((i = 0; i < num_nics; i++)); do
    for ((turn = 0; turn < 100; turn++)); do
      grep -q 0000:ffff:0a4d "/sys/class/infiniband/rxe$i/ports/1/gids/1" 2>/dev/null && break
      sleep .05
    done
    ((turn < 100)) || stop "rxe$i got no address"
  done
}

port_named() { basename "$(dirname "$(grep -lx "$1" /sys/class/virtio-ports/*/name)")"; }

mount_all
hostname roce
ip link set lo up
ulimit -l unlimited
ulimit -n 65536
echo 0 >/proc/sys/kernel/hung_task_timeout_secs 2>/dev/null
modprobe -a ib_uverbs rdma_rxe veth sch_netem || stop 'a module is missing'
make_links
make_nics
wait_for_addresses
echo "guest: ready after $(cut -d' ' -f1 /proc/uptime) s"
setsid bash /run/job/command </dev/null >"/dev/$(port_named out)" 2>"/dev/$(port_named err)"
finish $?
