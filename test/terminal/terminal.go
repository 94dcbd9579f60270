// Package terminal answers: what does a terminal receive and show of a program?
//
// [Open] makes a pseudo terminal, and [Screen] interprets what is written to a terminal.
package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal is a pseudo terminal.
type Terminal struct {
	// Stream is what a program reads from and writes to.
	Stream *os.File
	master *os.File
	read   chan string
}

// Open opens a pseudo terminal of Linux of that size.
func Open(tb testing.TB, columns, rows uint16) *Terminal {
	tb.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	number, err := unlock(master, columns, rows)
	if err != nil {
		tb.Fatal(err)
	}
	stream, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	t := &Terminal{Stream: stream, master: master, read: make(chan string, 1)}
	go func() {
		text, err := io.ReadAll(master)
		if err != nil && !errors.Is(err, syscall.EIO) { // EIO: the program has closed the terminal
			text = []byte(err.Error())
		}
		t.read <- string(text)
	}()
	tb.Cleanup(func() { _, _ = t.Stream.Close(), t.master.Close() })
	return t
}

// unlock makes the stream of a pseudo terminal available, and returns its number.
func unlock(master *os.File, columns, rows uint16) (int, error) {
	descriptor := int(master.Fd())
	number, err := unix.IoctlGetInt(descriptor, unix.TIOCGPTN)
	return number, errors.Join(err,
		unix.IoctlSetPointerInt(descriptor, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(descriptor, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
}

// Received closes the stream, and returns everything that was written to it, with the line ends of a file.
func (t *Terminal) Received() string {
	_ = t.Stream.Close() // the program may have closed it
	return strings.ReplaceAll(<-t.read, "\r\n", "\n")
}

// Type enters text, such as a line.
func (t *Terminal) Type(text string) error {
	_, err := io.WriteString(t.master, text)
	return err
}
