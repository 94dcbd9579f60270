package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Root returns the root of the repository that the working directory is in.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, toolsDir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%q is not inside the source tree of update-preflight", start)
		}
	}
}

// Bin returns the directory of the programs that `make` builds.
func Bin(root string) string { return filepath.Join(root, "bin") }

// Program returns the path of a program that `make` builds. The versions that test/tools pins
// are inputs of the test that calls Program.
func Program(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	pinned := filepath.Join(root, toolsDir)
	return built(root, name, "make tools", filepath.Join(pinned, "go.mod"), filepath.Join(pinned, "go.sum"))
}

// built returns the path of a program that a command builds from inputs of the test.
func built(root, name, command string, inputs ...string) (string, error) {
	path := filepath.Join(Bin(root), name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%q does not exist: run `%s`", path, command)
	}
	return path, declare(inputs...)
}
