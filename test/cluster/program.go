package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/openshift/update-preflight/test/build"
)

// checkPrograms returns an error with all missing programs, and the command that
// installs them.
func (p *plan) checkPrograms() error {
	binaries := []string{"server", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	var system []string
	if !p.controlPlaneOnly {
		binaries = append(binaries, "kubelet", "containerd", "containerd-shim-runc-v2",
			"bridge", "host-local", "loopback", "crane", "pause")
		system = []string{"runc", "nft", "ip"}
	}
	if p.simulated > 0 {
		binaries = append(binaries, "kwok")
	}
	if missing := absent(binaries, []string{p.bin}); len(missing) > 0 {
		return fmt.Errorf("%s: not in %q: run `make tools`", strings.Join(missing, ", "), p.bin)
	}
	if missing := absent(system, filepath.SplitList(searchPath())); len(missing) > 0 {
		return fmt.Errorf("%s: not installed: run `make system-packages`", strings.Join(missing, ", "))
	}
	return dependOnPrograms()
}

// dependOnPrograms makes the versions of the components inputs of the test that this process
// is.
func dependOnPrograms() error {
	_, err := build.Program("kube-apiserver")
	return err
}

// absent returns the programs that are in none of the directories.
func absent(programs, dirs []string) []string {
	var missing []string
	for _, program := range programs {
		if locate(program, dirs) == "" {
			missing = append(missing, program)
		}
	}
	return missing
}

// locate returns the path of a program in the first directory that has it.
func locate(program string, dirs []string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// searchPath is the search path for programs of the system, including the
// directories that only root has in its path.
func searchPath() string {
	return os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin"
}

// childEnv is the whole environment of components and system commands. It has no
// proxy, since all connections stay on the machine. Components collect garbage less
// often than by default, which saves a quarter of the processor time of an API server for
// some hundred MiB of memory, and start goroutines with a stack that fits the average one,
// which saves the copies of growing stacks. Each uses one processor at a time: its threads
// then wake up each other less often, which saves a third of the context switches.
func (p *plan) childEnv() []string {
	return []string{
		"PATH=" + p.bin + ":" + searchPath(), "HOME=/",
		"GOGC=400", "GOMAXPROCS=1", "GODEBUG=adaptivestackstart=1", markName + "=" + p.cluster.Dir,
	}
}
