package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sourceRoot finds this module's tree from the working directory, which is
// below it in every test.
func sourceRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "tools", "kubernetes", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%q is not inside the source tree of update-preflight", start)
		}
	}
}

// checkPrograms names everything that is missing at once, and who brings it.
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
	return nil
}

// absent lists the programs that are in none of the directories.
func absent(programs, dirs []string) []string {
	var missing []string
	for _, program := range programs {
		if locate(program, dirs) == "" {
			missing = append(missing, program)
		}
	}
	return missing
}

// locate is the path of a program in the first directory that has it.
func locate(program string, dirs []string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// searchPath is where programs of the system are looked for: also where only
// root looks, which is where they are.
func searchPath() string {
	return os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin"
}

// childEnv is all that components and system commands see of the environment:
// no proxy stands between the parts of one machine.
func (p *plan) childEnv() []string {
	return []string{"PATH=" + p.bin + ":" + searchPath(), "HOME=/", markName + "=" + p.cluster.Dir}
}
