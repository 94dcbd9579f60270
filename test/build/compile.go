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

// Compile compiles the main package in directory, which is relative to the root of the
// repository (examples/ingress) and may be in a module of its own, and returns the path
// of the program: static, for linux on this machine's architecture, with the version
// information of `go build` and without symbols. The program is kept, so that the Go tool
// links it again only if the package has changed; several processes may call Compile at
// the same time. Its source files are inputs of the test that calls Compile.
func Compile(ctx context.Context, directory string) (path string, err error) {
	return Variant{Name: filepath.Base(directory)}.Compile(ctx, directory)
}

// Variant is a program that differs from that of Compile in what the linker sets, so that it
// shares all compiled packages.
type Variant struct {
	// Name is the name of the program.
	Name string
	// Variables are set at link time, as "import/path.name=value".
	Variables []string
}

// Compile is the function Compile for the variant.
func (v Variant) Compile(ctx context.Context, directory string) (path string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, filepath.FromSlash(directory))
	files, err := sources(ctx, root, source)
	if err != nil {
		return "", err
	}
	if err := declare(files...); err != nil {
		return "", err
	}
	path = filepath.Join(Bin(root), "compiled", filepath.FromSlash(directory), v.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // programs, for all users
		return "", err
	}
	release, err := exclude(path + ".lock")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	// Without the revision, the program has the version of the tests, which continue and evaluate what it has recorded.
	//nolint:gosec // our own arguments
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", linkerFlags(v.Variables), "-o", path, ".")
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %q: %w: %s", directory, err, strings.TrimSpace(string(output)))
	}
	return path, nil
}

// exclude waits until no other process has the lock of a file, and takes it.
func exclude(path string) (release func() error, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the path is ours
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), file.Close())
	}
	return file.Close, nil
}
