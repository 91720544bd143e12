package lossydisk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	gofuse "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// device is what FUSE is spoken through.
const device = "/dev/fuse"

// Missing is what this machine lacks; "" if nothing.
func Missing() string {
	if os.Geteuid() != 0 {
		return "a disk that forgets what was not fsynced needs root, to mount it"
	}
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return fmt.Sprintf("a disk that forgets what was not fsynced needs FUSE (%v): modprobe fuse, "+
			"or start the container with --device %s --cap-add SYS_ADMIN", err, device)
	}
	_ = f.Close()
	return ""
}

// Disk is one mounted file system. Its methods may be called from several
// goroutines. Whoever mounted it closes it, when nobody uses a file of it any more.
type Disk struct {
	dir, backing string
	server       *fuse.Server

	mu     sync.Mutex
	synced map[uint64]int64 // by inode: size when it was last fsynced
	closed bool
}

// Mount shows the folder backing at dir, which has to be there and empty.
func Mount(dir, backing string) (*Disk, error) {
	d := &Disk{dir: dir, backing: backing, synced: map[uint64]int64{}}
	root := &gofuse.LoopbackRoot{Path: backing}
	//lint:ignore SA1019 its successor, WrapChild, would have to copy a node, and the locks in it
	root.NewNode = func(r *gofuse.LoopbackRoot, _ *gofuse.Inode, _ string, _ *syscall.Stat_t) gofuse.InodeEmbedder {
		return &node{gofuse.LoopbackNode{RootData: r}, d}
	}
	top := &node{gofuse.LoopbackNode{RootData: root}, d}
	root.RootNode = top
	server, err := mountAlone(dir, top)
	if err != nil {
		return nil, fmt.Errorf("mounting a disk that forgets at %s: %w", dir, err)
	}
	d.server = server
	return d, nil
}

// mountAlone mounts, and keeps what FUSE is spoken through from programs that
// are started later: go-fuse opens it so that they would have it too. A server
// that has it, and files of the disk, could not even be killed when this program
// was: it waits for an answer while it closes its files, and is who keeps
// the kernel from seeing that nobody is left to answer.
func mountAlone(dir string, top gofuse.InodeEmbedder) (*fuse.Server, error) {
	syscall.ForkLock.RLock() // nothing is started between opening and marking
	defer syscall.ForkLock.RUnlock()
	server, err := gofuse.Mount(dir, top, &gofuse.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, FsName: FSName, Name: FSName,
	}})
	if err != nil {
		return nil, err
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return nil, errors.Join(err, server.Unmount())
	}
	for _, path := range open {
		if to, err := os.Readlink(path); err != nil || to != device {
			continue
		}
		if fd, err := strconv.Atoi(filepath.Base(path)); err == nil {
			syscall.CloseOnExec(fd)
		}
	}
	return server, nil
}

// Cut forgets everything that was not fsynced, and says how many bytes that
// was. No program may have a file open for writing then.
func (d *Disk) Cut() (lost int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	err = filepath.WalkDir(d.backing, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		kept := d.synced[info.Sys().(*syscall.Stat_t).Ino]
		if info.Size() <= kept {
			return nil
		}
		lost += info.Size() - kept
		return os.Truncate(path, kept)
	})
	if err != nil {
		return lost, fmt.Errorf("cutting the power of %s: %w", d.dir, err)
	}
	return lost, nil
}

// Close unmounts it; if that is not possible, because somebody uses it, it
// vanishes from the tree at least, and is gone when nobody does. Twice is once.
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	if d.server.Unmount() == nil {
		return nil
	}
	if err := syscall.Unmount(d.dir, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("unmounting %s: %w", d.dir, err)
	}
	return nil
}

// forget has a file count as never fsynced beyond size.
func (d *Disk) forget(inode uint64, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size == 0 {
		delete(d.synced, inode) // the number may come back with another file
		return
	}
	d.synced[inode] = min(d.synced[inode], size)
}

// node is a file or folder.
type node struct {
	gofuse.LoopbackNode
	disk *Disk
}

func (n *node) Open(ctx context.Context, flags uint32) (gofuse.FileHandle, uint32, syscall.Errno) {
	h, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return n.follow(ctx, h, flags&syscall.O_TRUNC != 0)
}

func (n *node) Create(
	ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut,
) (*gofuse.Inode, gofuse.FileHandle, uint32, syscall.Errno) {
	inode, h, _, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	file, direct, errno := n.follow(ctx, h, true)
	return inode, file, direct, errno
}

// Setattr also cuts files short, which counts at once.
func (n *node) Setattr(
	ctx context.Context, h gofuse.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut,
) syscall.Errno {
	errno := n.LoopbackNode.Setattr(ctx, h, in, out)
	if size, ok := in.GetSize(); ok && errno == 0 {
		n.disk.forget(out.Ino, int64(size))
	}
	return errno
}

// follow wraps an open file, so that its fsyncs are seen.
func (n *node) follow(ctx context.Context, h gofuse.FileHandle, empty bool) (gofuse.FileHandle, uint32, syscall.Errno) {
	loop, ok := h.(*gofuse.LoopbackFile)
	if !ok {
		return nil, 0, syscall.EIO
	}
	var out fuse.AttrOut
	if errno := loop.Getattr(ctx, &out); errno != 0 {
		return nil, 0, errno
	}
	if empty {
		n.disk.forget(out.Ino, 0)
	}
	return &file{loop, n.disk, out.Ino}, 0, 0
}

// file is an open file.
type file struct {
	*gofuse.LoopbackFile
	disk  *Disk
	inode uint64
}

// PassthroughFd keeps the kernel from writing past this program.
func (*file) PassthroughFd() (int, bool) { return 0, false }

// Fsync remembers how long the file is. Nothing is written out: the machine
// under this one keeps its power.
func (f *file) Fsync(ctx context.Context, _ uint32) syscall.Errno {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	var out fuse.AttrOut
	if errno := f.Getattr(ctx, &out); errno != 0 {
		return errno
	}
	f.disk.synced[f.inode] = int64(out.Size)
	return 0
}
