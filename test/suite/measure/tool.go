//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// versionFlag asks a tool for its version, which the Go tool does before it uses the tool.
const versionFlag = "-V=full"

// runTool runs a tool of the Go tool, which starts it so because of -toolexec, and adds a line with
// the name of the tool and its processor time to a file: package suite reads it. Lines are short, so
// that those of tools that run at the same time do not mix.
func runTool(file, tool string, arguments []string) (status int, err error) {
	command := exec.Command(tool, arguments...) //nolint:gosec,noctx // the Go tool ends it by signals
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	status = command.ProcessState.ExitCode()
	if len(arguments) > 0 && arguments[0] == versionFlag {
		return status, nil
	}
	used := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	added, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the file of the suite
	if err != nil {
		return status, err
	}
	_, err = fmt.Fprintf(added, "%s %s\n", filepath.Base(tool), used)
	return status, errors.Join(err, added.Close())
}
