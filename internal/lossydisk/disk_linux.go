package lossydisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	gofuse "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const device = "/dev/fuse"

// Missing describes the missing parts of this machine; "": none.
func Missing() string {
	if os.Geteuid() != 0 {
		return "a disk that loses unsynced writes needs root, to mount it"
	}
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return fmt.Sprintf("a disk that loses unsynced writes needs FUSE (%v): modprobe fuse, "+
			"or start the container with --device %s --cap-add SYS_ADMIN", err, device)
	}
	_ = f.Close()
	return ""
}

// Disk is one mounted file system. Its methods may be called concurrently. The caller
// of [Mount] closes it when no file of it is open.
type Disk struct {
	dir, backing string
	server       *fuse.Server

	mu     sync.Mutex          // also held while a file is written, so that a write is before or after an fsync
	files  map[uint64]*durable // by inode: the part that survives a power cut; nil: an empty file
	closed bool
	slow   slowness
}

// Mount mounts the directory backing at dir, which must exist and be empty.
func Mount(dir, backing string) (*Disk, error) {
	d := &Disk{dir: dir, backing: backing, files: map[uint64]*durable{}}
	root := &gofuse.LoopbackRoot{Path: backing}
	//nolint:staticcheck // SA1019: the successor, WrapChild, would have to copy a node and the locks in it
	root.NewNode = func(r *gofuse.LoopbackRoot, _ *gofuse.Inode, _ string, _ *syscall.Stat_t) gofuse.InodeEmbedder {
		return &node{gofuse.LoopbackNode{RootData: r}, d}
	}
	top := &node{gofuse.LoopbackNode{RootData: root}, d}
	root.RootNode = top
	server, err := mountCloseOnExec(dir, top)
	if err != nil {
		return nil, fmt.Errorf("mounting a lossy disk at %s: %w", dir, err)
	}
	d.server = server
	return d, nil
}

// mountCloseOnExec mounts, and makes the FUSE device close-on-exec, which go-fuse does
// not. A server that inherited the device could not be killed after this program was:
// while it exits, it waits for a FUSE reply to the close of its files, and its own copy
// of the device keeps the kernel from aborting the connection.
func mountCloseOnExec(dir string, top gofuse.InodeEmbedder) (*fuse.Server, error) {
	syscall.ForkLock.RLock() // nothing is started before the device is close-on-exec
	defer syscall.ForkLock.RUnlock()
	server, err := gofuse.Mount(dir, top, &gofuse.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, FsName: fsName, Name: fsName,
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

// Cut drops everything that was not fsynced, and returns how many bytes that was: appended bytes, and bytes written
// over others. No program may have a file open for writing.
func (d *Disk) Cut() (lost int64, err error) {
	err = d.walk(func(path string, inode uint64, size int64) error {
		bytes, err := d.files[inode].restore(path, size)
		lost += bytes
		return err
	})
	if err != nil {
		return lost, fmt.Errorf("cutting the power of %s: %w", d.dir, err)
	}
	return lost, nil
}

// Sync makes everything durable that was written until now, as the kernel does half a minute later.
func (d *Disk) Sync() error {
	err := d.walk(func(_ string, inode uint64, size int64) error {
		d.files[inode] = &durable{size: size}
		return nil
	})
	if err != nil {
		return fmt.Errorf("syncing %s: %w", d.dir, err)
	}
	return nil
}

// walk visits every file. d.mu is held meanwhile.
func (d *Disk) walk(visit func(path string, inode uint64, size int64) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return filepath.WalkDir(d.backing, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a server has removed it meanwhile
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(path, info.Sys().(*syscall.Stat_t).Ino, info.Size())
	})
}

// Close unmounts it. A busy mount is detached (MNT_DETACH): it disappears when it is
// no longer in use. Close may be called twice.
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

// truncated records that a file now has that size. d.mu is held.
func (d *Disk) truncated(inode uint64, size int64) {
	if size == 0 {
		delete(d.files, inode) // the number may be reused
		return
	}
	d.files[inode].truncate(size)
}

// node is a file or directory.
type node struct {
	gofuse.LoopbackNode
	disk *Disk
}

func (n *node) Open(ctx context.Context, flags uint32) (gofuse.FileHandle, uint32, syscall.Errno) {
	h, _, errno := n.LoopbackNode.Open(ctx, readable(flags))
	if errno != 0 {
		return nil, 0, errno
	}
	return n.wrap(ctx, h, flags&syscall.O_TRUNC != 0)
}

func (n *node) Create(
	ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut,
) (*gofuse.Inode, gofuse.FileHandle, uint32, syscall.Errno) {
	inode, h, _, errno := n.LoopbackNode.Create(ctx, name, readable(flags), mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	file, direct, errno := n.wrap(ctx, h, true)
	return inode, file, direct, errno
}

// readable are the flags to open a file that is to be written: overwritten bytes are read before.
func readable(flags uint32) uint32 {
	if flags&syscall.O_ACCMODE == syscall.O_WRONLY {
		return flags&^syscall.O_ACCMODE | syscall.O_RDWR
	}
	return flags
}

// Setattr may truncate the file.
func (n *node) Setattr(
	ctx context.Context, h gofuse.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut,
) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	errno := n.LoopbackNode.Setattr(ctx, h, in, out)
	if size, ok := in.GetSize(); ok && errno == 0 {
		n.disk.truncated(out.Ino, int64(size))
	}
	return errno
}

// CopyFileRange is not supported: the kernel then reads and writes.
func (*node) CopyFileRange(
	context.Context, gofuse.FileHandle, uint64, *gofuse.Inode, gofuse.FileHandle, uint64, uint64, uint64,
) (uint32, syscall.Errno) {
	return 0, syscall.ENOSYS
}

// wrap wraps an open file to record its writes and fsyncs.
func (n *node) wrap(ctx context.Context, h gofuse.FileHandle, empty bool) (gofuse.FileHandle, uint32, syscall.Errno) {
	loop, ok := h.(*gofuse.LoopbackFile)
	if !ok {
		return nil, 0, syscall.EIO
	}
	var out fuse.AttrOut
	if errno := loop.Getattr(ctx, &out); errno != 0 {
		return nil, 0, errno
	}
	if empty {
		n.disk.mu.Lock()
		defer n.disk.mu.Unlock()
		n.disk.truncated(out.Ino, 0)
	}
	return &file{loop, n.disk, out.Ino}, 0, 0
}

// file is an open file.
type file struct {
	*gofuse.LoopbackFile
	disk  *Disk
	inode uint64
}

// PassthroughFd disables passthrough: the kernel must not write without this program.
func (*file) PassthroughFd() (int, bool) { return 0, false }

// Write saves the bytes that it overwrites.
func (f *file) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if kept := f.disk.files[f.inode]; kept != nil {
		if err := kept.save(fileReader{ctx, f.LoopbackFile}, off, int64(len(data))); err != nil {
			return 0, gofuse.ToErrno(err)
		}
	}
	return f.LoopbackFile.Write(ctx, data, off)
}

// Allocate only reserves space: a range that is to be zeroed or removed is refused, and the program writes it.
func (f *file) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	if mode&^unix.FALLOC_FL_KEEP_SIZE != 0 {
		return syscall.EOPNOTSUPP
	}
	return f.LoopbackFile.Allocate(ctx, off, size, mode)
}

// Fsync makes the file durable as it is. It does not sync the backing file: the machine does not lose its power.
// On a slow disk it takes a while, during which the kernel blocks writes to the file.
func (f *file) Fsync(ctx context.Context, _ uint32) syscall.Errno {
	if errno := f.disk.delay(ctx); errno != 0 {
		return errno
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	var out fuse.AttrOut
	if errno := f.Getattr(ctx, &out); errno != 0 {
		return errno
	}
	f.disk.files[f.inode] = &durable{size: int64(out.Size)}
	return 0
}

// fileReader reads an open file.
type fileReader struct {
	ctx  context.Context
	file *gofuse.LoopbackFile
}

func (r fileReader) ReadAt(to []byte, off int64) (int, error) {
	result, errno := r.file.Read(r.ctx, to, off)
	if errno != 0 {
		return 0, errno
	}
	defer result.Done()
	read, status := result.Bytes(to)
	if !status.Ok() {
		return 0, syscall.Errno(status)
	}
	n := copy(to, read)
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}
