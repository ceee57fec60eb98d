#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
#
# The first process of the guest: reaches the host's files, lays memory over them, and goes on there.
b=/bin/busybox
stop() {
  echo "guest init: $*" >/dev/console
  $b poweroff -f
}
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for module in /modules/*.ko; do $b insmod "$module" || stop "insmod $module"; done
how=trans=virtio,version=9p2000.L,msize=524288
$b mount -t 9p -o ro,cache=loose,$how root /lower || stop 'the root is not there'
$b mount -t tmpfs -o size=75% upper /upper
$b mkdir /upper/upper /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/upper,workdir=/upper/work overlay /root || stop 'no overlay'
cd /root || stop 'no root'
for directory in proc sys dev run tmp; do [ -d $directory ] || $b mkdir -p $directory; done
$b mount -t proc proc proc
$b mount -t sysfs sys sys
$b mount -t devtmpfs dev dev
$b mount -t tmpfs run run
$b mkdir -p dev/shm dev/pts run/job run/lock
$b mount -t devpts devpts dev/pts
$b mount -t tmpfs -o size=75% shm dev/shm
$b ln -sf /proc/self/fd dev/fd
$b mount -t 9p -o cache=none,$how job run/job || stop 'no job'
exec $b chroot . /bin/bash /run/job/setup </dev/null >/dev/console 2>&1
