package modules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/modules"
)

// command is the package that is installed by name.
const command = "github.com/openshift/update-preflight/cmd/oc-preflight"

// user has an empty directory, an empty module cache, and a module proxy with
// the modules of this repository. Their dependencies come from the module cache
// of the machine; the network is not used.
type user struct {
	dir, bin    string
	environment []string
}

func newUser(t *testing.T, proxy string) user {
	t.Helper()
	home := t.TempDir()
	u := user{dir: t.TempDir(), bin: filepath.Join(home, "bin")}
	u.environment = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"GOPROXY=file://" + filepath.ToSlash(proxy) + ",file://" + filepath.ToSlash(goEnv(t, "GOMODCACHE")) + "/cache/download",
		"GOSUMDB=off", // it is only on the network
		"GOENV=off",
		"GOTOOLCHAIN=local",
		"GOMODCACHE=" + filepath.Join(home, "mod"),
		"GOCACHE=" + goEnv(t, "GOCACHE"),
		"GOFLAGS=-mod=mod -modcacherw -trimpath " + os.Getenv("GOFLAGS"), // -trimpath: compiled packages are shared between module caches
		"GOBIN=" + u.bin,
		"CGO_ENABLED=0",
	}
	return u
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(value))
}

// run runs a program in the user's directory, and returns what it prints.
func (u user) run(t *testing.T, args ...string) string {
	t.Helper()
	program := exec.CommandContext(t.Context(), args[0], args[1:]...)
	program.Dir, program.Env = u.dir, u.environment
	output, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// publishAll fills a module proxy with all published modules.
func publishAll(t *testing.T) (proxy, version string, published []modules.Module) {
	t.Helper()
	published, err := modules.Published(root)
	if err != nil {
		t.Fatal(err)
	}
	proxy, version = t.TempDir(), modules.Version(published)
	for _, module := range published {
		if err := module.Publish(t.Context(), root, proxy, version); err != nil {
			t.Fatal(err)
		}
	}
	return proxy, version, published
}

// TestPublishedModulesInstall installs the modules as a user does once they are tagged,
// from the working tree instead of the tags.
func TestPublishedModulesInstall(t *testing.T) {
	proxy, version, published := publishAll(t)
	t.Run("the command is installed by name", func(t *testing.T) {
		u := newUser(t, proxy)
		u.run(t, "go", "install", command+"@"+version)
		program := filepath.Join(u.bin, "oc-preflight")
		if built := u.run(t, "go", "version", "-m", program); !strings.Contains(built, "\tmod\tgithub.com/openshift/update-preflight\t"+version) {
			t.Errorf("the program is not built from %s:\n%s", version, built)
		}
		if help := u.run(t, program, "--help"); !strings.Contains(help, "preflight") {
			t.Errorf("--help prints %q", help)
		}
	})
	for _, module := range published {
		if module.Dir == "." {
			continue
		}
		t.Run(module.Dir+" is required by another module", func(t *testing.T) {
			u := newUser(t, proxy)
			u.run(t, "go", "mod", "init", "example.com/consumer")
			u.run(t, "go", "get", module.Path+"@"+version)
			u.run(t, "go", "build", module.Path+"/...")
		})
	}
}
