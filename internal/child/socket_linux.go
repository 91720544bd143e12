package child

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// socketTries: the kernel's list of sockets may lack one while others come and go.
const socketTries = 5

// SocketVariable is the variable called name in the environment of the process that has the TCP connection from local
// to remote open; false if it is another user's process, or has ended.
func SocketVariable(local, remote netip.AddrPort, name string) (value string, ok bool) {
	fields := socket(local, remote)
	if fields == nil {
		return "", false
	}
	inode := fields[inodeField]
	for _, pid := range processes() {
		value, ok := variable(pid, name)
		if ok && hasFile(pid, "socket:["+inode+"]") {
			return value, true
		}
	}
	return "", false
}

// SocketUser is the user id of the process that has the TCP connection from local to remote open; false if none has.
func SocketUser(local, remote netip.AddrPort) (uid int, ok bool) {
	fields := socket(local, remote)
	if fields == nil {
		return 0, false
	}
	uid, err := strconv.Atoi(fields[userField])
	return uid, err == nil
}

// HasSocket reports whether the process itself has the TCP connection from local to remote open.
func (p *Process) HasSocket(local, remote netip.AddrPort) bool {
	fields := socket(local, remote)
	return fields != nil && hasFile(p.pid, "socket:["+fields[inodeField]+"]")
}

// Fields of a line of /proc/net/tcp (proc(5)).
const (
	localField  = 1
	remoteField = 2
	userField   = 7
	inodeField  = 9
)

// socket is findSocket, tried several times.
func socket(local, remote netip.AddrPort) []string {
	for range socketTries {
		if fields := findSocket(local, remote); fields != nil {
			return fields
		}
	}
	return nil
}

// findSocket is the line of an IPv4 connection in /proc/net/tcp (proc(5)); nil if there is none. The local address
// alone is not enough: the kernel gives one local port to connections with different remote addresses, and lists closed
// ones (TIME_WAIT), which belong to no process.
func findSocket(local, remote netip.AddrPort) []string {
	if !local.Addr().Is4() || !remote.Addr().Is4() {
		return nil
	}
	file, err := os.Open("/proc/net/tcp")
	if err != nil {
		return nil
	}
	defer file.Close()
	from, to := socketAddress(local), socketAddress(remote)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > inodeField &&
			fields[localField] == from && fields[remoteField] == to {
			return fields
		}
	}
	return nil
}

// socketAddress is an IPv4 address as /proc/net/tcp shows it.
func socketAddress(a netip.AddrPort) string {
	ip := a.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
}

// hasFile reports whether process pid has a file open that /proc shows as name.
func hasFile(pid int, name string) bool {
	fds, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && target == name {
			return true
		}
	}
	return false
}
