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

// SocketVariable is the variable called name in the environment of the process that has the TCP socket with this local
// address open; false if that is another user's process, or nobody's any more.
func SocketVariable(local netip.AddrPort, name string) (value string, ok bool) {
	inode := ""
	for try := 0; try < socketTries && inode == ""; try++ {
		inode = socketInode(local)
	}
	if inode == "" {
		return "", false
	}
	for _, pid := range processes() {
		value, ok := variable(pid, name)
		if ok && hasFile(pid, "socket:["+inode+"]") {
			return value, true
		}
	}
	return "", false
}

// socketInode finds an IPv4 socket by its local address in /proc/net/tcp (proc(5)); "" if there is none.
func socketInode(local netip.AddrPort) string {
	if !local.Addr().Is4() {
		return ""
	}
	file, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer file.Close()
	ip := local.Addr().As4()
	want := fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), local.Port())
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 9 && fields[1] == want {
			return fields[9]
		}
	}
	return ""
}

// hasFile says whether process pid has a file open that /proc shows as name.
func hasFile(pid int, name string) bool {
	fds, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && target == name {
			return true
		}
	}
	return false
}
