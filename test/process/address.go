package process

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Address waits until the program listens on a TCP port of an IPv4 address, and returns
// both as host:port. A program that is started with port 0 is given one that is free: a
// port that a test chooses before could be taken until the program listens on it.
func (p *Process) Address(tb testing.TB) string {
	tb.Helper()
	var address string
	p.Await(tb, "a port on which the program listens", func(context.Context) bool {
		var err error
		address, err = listening(p.command.Process.Pid)
		return err == nil && address != ""
	})
	return address
}

// listening returns the address on which a process listens, as the kernel reports it in
// proc_pid_net(5); "" if there is none.
func listening(pid int) (string, error) {
	directory := filepath.Join("/proc", strconv.Itoa(pid))
	open, err := sockets(directory)
	if err != nil {
		return "", err
	}
	file, err := os.Open(filepath.Join(directory, "net", "tcp")) //nolint:gosec // a file of the kernel
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	const local, state, inode, listen = 1, 3, 9, "0A"
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > inode && fields[state] == listen && open["socket:["+fields[inode]+"]"] {
			return parse(fields[local])
		}
	}
	return "", lines.Err()
}

// sockets returns the targets of the open files of a process, among which are its sockets.
func sockets(directory string) (map[string]bool, error) {
	descriptors, err := os.ReadDir(filepath.Join(directory, "fd"))
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(filepath.Join(directory, "fd", descriptor.Name())); err == nil { // or it was closed meanwhile
			open[target] = true
		}
	}
	return open, nil
}

// parse reads an address in the format of the kernel: the IP address as a number in the
// byte order of the machine, and the port.
func parse(address string) (string, error) {
	ip, port, _ := strings.Cut(address, ":")
	digits, err := hex.DecodeString(ip)
	if err != nil || len(digits) != 4 {
		return "", fmt.Errorf("%q is not an IPv4 address", address)
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return "", fmt.Errorf("%q has no port: %w", address, err)
	}
	var bytes [4]byte
	binary.NativeEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(digits))
	return netip.AddrPortFrom(netip.AddrFrom4(bytes), uint16(number)).String(), nil
}
