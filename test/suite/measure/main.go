//go:build linux

// Measure runs a program, such as the binary of a package's tests by "go test -exec",
// and prints the processor time of it and of all its descendants, also of those that
// outlived their parents. Its last line is read by package suite.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: measure PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	status, err := run(os.Args[1], cacheable(os.Args[1], os.Args[2:]))
	if err == nil {
		err = report()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	if status.Signaled() {
		fmt.Fprintf(os.Stderr, "measure: %s: %s\n", os.Args[1], status.Signal())
		os.Exit(1)
	}
	os.Exit(status.ExitStatus())
}

// cacheable adds the argument that the Go tool gives the binary of a test so that it can
// cache the result, where that is the binary: it names the file for what the test reads.
// With -exec the Go tool leaves the argument out, since the program could run elsewhere,
// but it reads the file. Without it results are not cached.
func cacheable(program string, arguments []string) []string {
	const flag = "-test.testlogfile="
	if !strings.HasSuffix(program, ".test") || slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, flag) }) {
		return arguments
	}
	return append([]string{flag + filepath.Join(filepath.Dir(program), "testlog.txt")}, arguments...)
}

// run runs the program, and reaps the descendants whose parent has ended.
func run(program string, arguments []string) (syscall.WaitStatus, error) {
	// The kernel kills the child at the end of the thread that started it.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become the parent of orphans: %w", err)
	}
	command := exec.Command(program, arguments...) //nolint:gosec,noctx // the Go tool ends it by signals
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if err := command.Start(); err != nil {
		return 0, err
	}
	go forward(signals, command.Process)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == command.Process.Pid {
			return status, nil
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return 0, fmt.Errorf("wait for %s: %w", program, err)
		}
	}
}

// forward passes signals on. An interrupt of the terminal reaches the process by itself.
func forward(signals <-chan os.Signal, process *os.Process) {
	for received := range signals {
		if received != os.Interrupt {
			_ = process.Signal(received) // unless it has ended
		}
	}
}

// report prints the processor time of the descendants that have ended.
func report() error {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
			break
		}
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return fmt.Errorf("read the processor time: %w", err)
	}
	user, system := float64(usage.Utime.Nano())/1e9, float64(usage.Stime.Nano())/1e9
	fmt.Printf("processor time: %.2f s (user %.2f s, system %.2f s)\n", user+system, user, system)
	return nil
}
