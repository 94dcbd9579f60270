package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// inputsVariable is the environment variable with the path of a file, to which a test adds
// the files that its programs were built from, one path a line. The program measure makes
// them inputs of the test, for which the Go tool caches the result: the Go tool itself knows
// the packages of the test only, and not those of the programs that it starts.
const inputsVariable = "PREFLIGHT_TEST_INPUTS"

// declare adds files to the inputs of the test that this process is, if something asks for
// them.
func declare(paths ...string) error {
	name, wanted := syscall.Getenv(inputsVariable) // os.Getenv would make its value an input
	if !wanted {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the file of measure
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(paths, "\n") + "\n")
	return errors.Join(err, file.Close())
}

// sourceFiles is a template of "go list": the files that a package of the workspace is
// compiled from, and nothing for other packages.
const sourceFiles = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}` +
	`{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`

// sources returns the files that the program in directory is compiled from: those of the
// workspace, and the list of its requirements.
func sources(ctx context.Context, root, directory string) ([]string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-f", sourceFiles, ".")
	command.Dir = directory
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %q: %w", directory, err)
	}
	files := strings.Fields(string(output)) // the Go tool allows no space in the path of a package
	return append(files, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")), nil
}
