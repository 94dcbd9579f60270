package preflight_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// keptByKubelet returns the part of a termination message that a kubelet keeps:
// the end of the file (pkg/kubelet/kuberuntime, getTerminationMessage) and, for a
// pod with many containers, the head of that (pkg/kubelet/status,
// normalizeStatus).
func keptByKubelet(file []byte, containers int) []byte {
	const perContainer, perPod = 4096, 12288
	file = file[max(0, len(file)-perContainer):]
	return file[:min(len(file), perPod/containers)]
}

func TestTerminationMessageIsCompleteOrRejected(t *testing.T) {
	for _, containers := range []int{1, 2, 3, 4, 8, 12, 24} {
		// A budget for this number of containers, and the budget of a pod to which a
		// webhook added sidecars later.
		budgets := map[string]int{"expected": min(4096, 12288/containers), "injected": 4096}
		for name, budget := range budgets {
			t.Run(strconv.Itoa(containers)+"/"+name, func(t *testing.T) {
				var stdout, stderr strings.Builder
				p := preflight.Program{
					Env:    map[string]string{"PREFLIGHT_RUN_ID": "5f0c", "PREFLIGHT_RESULT_BYTES": strconv.Itoa(budget)},
					Stdout: &stdout, Stderr: &stderr, TerminationLog: existingLog(t),
				}
				code := p.Run(context.Background(), longCheck(12000), preflight.Check{Name: "More", Run: pass})
				file := readFile(t, p.TerminationLog)
				result, err := preflight.ParseFrame(keptByKubelet(file, containers))
				if len(file) > 12288/containers {
					if !errors.Is(err, preflight.ErrNoFrame) {
						t.Errorf("an incomplete frame resulted in %+v, error %v", result, err)
					}
					result, err = preflight.ParseFrame([]byte(stdout.String()))
				}
				if err != nil || !result.Agrees(code) || result.Findings[0].Outcome != preflight.Fail {
					t.Errorf("the runner receives %+v, error %v", result, err)
				}
			})
		}
	}
}

// readOnlyDirectory returns a directory with the permissions of the root
// filesystem of a check: every user can execute the program and overwrite the
// termination log, and none can create a file.
func readOnlyDirectory(t *testing.T, files map[string][]byte) string {
	t.Helper()
	home := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(home, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(home, "termination-log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{log: 0o666, filepath.Dir(home): 0o755, home: 0o555} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(home, 0o700) })
	return home
}

func TestUnprivilegedUserOnReadOnlyFilesystem(t *testing.T) {
	// The test binary is a check program, see TestMain.
	program := readFile(t, os.Args[0])
	helper := readFile(t, "sh/preflight.sh")
	script := []byte(". ./preflight.sh\nfirst() { preflight_pass fine; }\nmiddle() { preflight_pass \"$(id -u)\"; }\npreflight_main " +
		"First first Middle middle Last first\n")
	cases := map[string]struct {
		reason string
		files  map[string][]byte
		args   []string
	}{
		"Go": {"The SDK writes only to the termination log", map[string][]byte{"program": program}, []string{"./program"}},
		"Shell": {
			"preflight.sh writes only to the termination log",
			map[string][]byte{"preflight.sh": helper, "program": script},
			[]string{"sh", "./program"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			home := readOnlyDirectory(t, tc.files)
			log := filepath.Join(home, "termination-log")
			command := exec.CommandContext(context.Background(), tc.args[0], tc.args[1:]...)
			command.Dir = home
			command.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "PREFLIGHT_TERMINATION_LOG=" + log,
				programVariable + "=passes", terminationLogVariable + "=" + log,
			}
			if os.Getuid() == 0 {
				command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
			}
			var stderr bytes.Buffer
			command.Stderr = &stderr
			if err := command.Run(); err != nil {
				t.Fatalf("%s: %v: %s", tc.reason, err, stderr.String())
			}
			result, err := preflight.ParseFrame(readFile(t, log))
			if err != nil || !result.Agrees(0) || len(result.Findings) != 3 {
				t.Errorf("%s: %+v, error %v", tc.reason, result, err)
			}
			entries, err := os.ReadDir(home)
			if err != nil || len(entries) != len(tc.files)+1 {
				t.Errorf("%s: the directory contains %v, error %v", tc.reason, entries, err)
			}
		})
	}
}
