//go:build linux

// Measure runs a program, such as the binary of a package's tests by "go test -exec",
// and prints the processor time of it and of all its descendants, also of those that
// outlived their parents. Its last line is read by package suite. With -tool FILE it runs a
// compiler or a linker by "go test -toolexec".
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// endTimeout is how long descendants may take to end that have outlived the tests. What a
	// test has left running costs that time, and is not measured.
	endTimeout   = 2 * time.Second
	pollInterval = 10 * time.Millisecond
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: measure [-tool FILE] PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	var status int
	var err error
	if os.Args[1] == "-tool" && len(os.Args) > 3 {
		status, err = runTool(os.Args[2], os.Args[3], os.Args[4:])
	} else {
		status, err = measured(os.Args[1], os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	os.Exit(status)
}

// measured runs a program, and prints its processor time.
func measured(program string, arguments []string) (status int, err error) {
	used := inputs{log: filepath.Join(filepath.Dir(program), "testlog.txt"), declared: filepath.Join(filepath.Dir(program), "inputs.txt")}
	isTest := strings.HasSuffix(program, ".test")
	if isTest {
		arguments = append([]string{"-test.testlogfile=" + used.log}, arguments...)
	}
	ended, err := run(program, arguments, append(os.Environ(), inputsVariable+"="+used.declared))
	if err == nil && isTest {
		err = used.rewrite()
	}
	if err == nil {
		err = report()
	}
	if err == nil && ended.Signaled() {
		err = fmt.Errorf("%s: %s", program, ended.Signal())
	}
	return ended.ExitStatus(), err
}

// run runs the program, and reaps the descendants whose parent has ended.
func run(program string, arguments, environment []string) (syscall.WaitStatus, error) {
	// The kernel kills the child at the end of the thread that started it.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become the parent of orphans: %w", err)
	}
	command := exec.Command(program, arguments...) //nolint:gosec,noctx // the Go tool ends it by signals
	command.Env = environment
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

// report prints the processor time of the descendants, once those that are ending have
// ended.
func report() error {
	for deadline := time.Now().Add(endTimeout); time.Now().Before(deadline); {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil {
			break // there is no other descendant
		}
		if pid <= 0 {
			time.Sleep(pollInterval)
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
