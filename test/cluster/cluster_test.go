package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/test/cluster"
)

// starterDir is the name of the variable that makes this test binary start a
// cluster in the directory that is its value, and wait to be killed.
const starterDir = "PREFLIGHT_TEST_STARTER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterDir); dir != "" {
		startAndWait(dir)
	}
	os.Exit(m.Run())
}

func startAndWait(dir string) {
	if _, err := cluster.Start(context.Background(), dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// TestStart proves that two clusters can run at the same time, are real and
// separate, and leave nothing behind.
func TestStart(t *testing.T) {
	full, bare := start(t), start(t, cluster.ControlPlaneOnly(), cluster.FeatureSet("TechPreviewNoUpgrade"))
	if full.Config.Host == bare.Config.Host {
		t.Fatalf("two clusters have the same address %s", full.Config.Host)
	}
	if diff := cmp.Diff("", bare.Registry); diff != "" {
		t.Errorf("registry of a control plane without nodes: -want, +got:\n%s", diff)
	}
	t.Run("pods read the API with the in-cluster configuration, and kubectl logs works", func(t *testing.T) {
		allowReading(t, full)
		runPod(t, full, "reader", "read", "/api/v1/namespaces/default")
		log := podLog(t, full, "reader")
		if !strings.HasPrefix(log, "200 OK") || !strings.Contains(log, `"name":"default"`) {
			t.Errorf("want the namespace in the log of the pod that reads it, got %q", log)
		}
	})
	for _, c := range []*cluster.Cluster{full, bare} {
		t.Run("OpenShift resources are served and RBAC is enforced", func(t *testing.T) {
			createsClusterVersion(t, c)
			forbidsByDefault(t, c)
		})
	}
	t.Run("a directory has one cluster, which only its starter stops", func(t *testing.T) {
		if _, err := cluster.Start(t.Context(), full.Dir); err == nil || !strings.Contains(err.Error(), "is running in") {
			t.Errorf("want an error about the running cluster, got %v", err)
		}
		if err := cluster.Remove(t.Context(), full.Dir); err == nil || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
			t.Errorf("want an error that names the process to stop, got %v", err)
		}
	})
	t.Run("the port of the API server is reserved", func(t *testing.T) {
		_, port, _ := strings.Cut(strings.TrimPrefix(bare.Config.Host, "https://"), ":")
		other, err := net.Listen("unix", "@preflight-cluster-port-"+port) //nolint:noctx // it does not block
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("another cluster could take the port: %v, %v", other, err)
		}
	})
	t.Run("a component that ends by itself is reported with its log", func(t *testing.T) {
		kill(t, bare.Dir, "kube-scheduler --kubeconfig")
		if err := <-bare.Failed(); !strings.Contains(err.Error(), "kube-scheduler ended (signal: killed)") ||
			!strings.Contains(err.Error(), "kube-scheduler.log ends with:") {
			t.Errorf("want the end of the scheduler with its log, got %v", err)
		}
	})
	for _, c := range []*cluster.Cluster{full, bare} {
		o := ownerOf(t, c)
		things := o.things(t)
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string(nil), o.still(t, things)); diff != "" {
			t.Errorf("a stopped cluster must leave nothing: -want, +got:\n%s", diff)
		}
		if _, err := cluster.Open(c.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Open of a stopped cluster: want os.ErrNotExist, got %v", err)
		}
	}
}

// TestRemoveAfterCrash kills containerd and the cluster's starter while a pod
// runs, and then removes what is left.
func TestRemoveAfterCrash(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("longer-than-a-socket-may-be-", 4))
	starter := exec.CommandContext(t.Context(), os.Args[0])
	starter.Env = append(os.Environ(), starterDir+"="+dir)
	output, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	removeAtEnd(t, dir)
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || line != "started\n" {
		t.Fatalf("want a started cluster, got %q, %v", line, err)
	}
	c, err := cluster.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	runPod(t, c, "sleeper", "hold", "/version")
	o := ownerOf(t, c)
	things := o.things(t)
	for kind, list := range things {
		if len(list) == 0 {
			t.Errorf("the cluster has no %s, so their removal cannot be tested", kind)
		}
	}

	kill(t, dir, "containerd --config")
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait() // an error, since it was killed
	if len(o.still(t, things)) == 0 {
		t.Fatal("the crash left nothing, so the removal cannot be tested")
	}
	if err := cluster.Remove(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string(nil), o.still(t, things)); diff != "" {
		t.Errorf("a removed cluster must leave nothing: -want, +got:\n%s", diff)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Remove must remove the directory, got %v", err)
	}
}

// TestStartRefuses holds that a start which cannot succeed reports the cause in
// one line, and changes nothing.
func TestStartRefuses(t *testing.T) {
	foreign := t.TempDir()
	precious := filepath.Join(foreign, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason  string
		dir     string
		options []cluster.Option
		want    string
	}{
		"ForeignDirectory": {
			reason: "a directory with other files must not be cleared",
			dir:    foreign,
			want:   "is not empty",
		},
		"UnknownFeatureSet": {
			reason:  "a feature set without manifests must not start a cluster without OpenShift resources",
			dir:     t.TempDir(),
			options: []cluster.Option{cluster.ControlPlaneOnly(), cluster.FeatureSet("NoSuchSet")},
			want:    `feature set "NoSuchSet"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.Start(t.Context(), tc.dir, tc.options...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: want one line, got %q", tc.reason, err)
			}
		})
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("a file that is not of a cluster was removed: %v", err)
	}
}

// TestStartQuotesTheLog holds that the error names a component that does not
// start, and its log.
func TestStartQuotesTheLog(t *testing.T) {
	dir := t.TempDir()
	removeAtEnd(t, dir)
	_, err := cluster.Start(t.Context(), dir, cluster.ControlPlaneOnly(), cluster.Progress(func(step string, _ time.Duration) {
		if step == "etcd" {
			kill(t, dir, "server --data-dir")
		}
	}))
	for _, want := range []string{"etcd ended (signal: killed)", filepath.Join(dir, "logs", "etcd.log")} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func start(t *testing.T, options ...cluster.Option) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), t.TempDir(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// removeAtEnd removes the cluster in dir if the test fails before it does so.
func removeAtEnd(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() {
		err := cluster.Remove(context.WithoutCancel(t.Context()), dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

// kill kills the process of the cluster in dir whose command line has that text.
func kill(t *testing.T, dir, command string) {
	t.Helper()
	for _, process := range (owner{dir: dir, node: "none"}).processes(t) {
		if !strings.Contains(process, command) {
			continue
		}
		pid, err := strconv.Atoi(strings.Fields(process)[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("no process %q of the cluster in %q", command, dir)
}
