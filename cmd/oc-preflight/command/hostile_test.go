package command_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/test/program"
)

// hostileNames are what a hostile server calls the objects of an archive.
func hostileNames() map[string]string {
	return map[string]string{
		"node-0": "$(touch made)", "node-1": "a;touch made", "node-2": "--kubeconfig=made", "worker-0": "b|touch made",
		"worker-1": "c;touch made", "master": "`touch made`", "worker": "a&touch made",
		"kube-apiserver": "'$(touch made)'", "machine-config": `"$(touch made)"`, "kube-controller-manager": "a>made",
		"machine-api": "a & touch made", "storage": "\\'$(touch made)",
		"ack-4.18-boot-image-opt-out-in-4.19": "ack-4.18-'$(touch made)'", "rendered-master-0a1b": "|touch made", "00-master": "<made",
		"flowcontrol-flowschema-storage-version-migration": "a${IFS}touch", "pods.v1": "pods.v1;touch made",
		"packageserver": "a\u202e$(touch made)",
		"csr-1":         "csr-x;touch${IFS}made", "csr-2": "$(touch made)", "infra": "infra||touch made", "shop": "'';touch made;'",
		"budget": "a\ntouch made", "pod-1": "p>made",
		"replicas-1": "r;touch made", "v1.metrics": "v1.$(touch made)", "hook": "w&&touch made", "gone": "gone`touch made`",
		"system": "$(touch made)x",
	}
}

// unhealthy are objects about which commands are printed.
const unhealthy = `apiVersion: v1
kind: List
items:
- {apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: csr-1, creationTimestamp: "2025-06-01T08:00:00Z"}, spec: {signerName: kubernetes.io/kubelet-serving, username: "system:node:a"}}
- {apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: csr-2, creationTimestamp: "2025-06-01T08:00:00Z"}, spec: {signerName: kubernetes.io/kube-apiserver-client-kubelet, username: "system:node:a"}}
- {apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: infra}, spec: {nodeSelector: {matchLabels: {node-role.kubernetes.io/infra: ""}}}, status: {machineCount: 1, degradedMachineCount: 1, conditions: [{type: Degraded, status: "True", reason: NodeFailed}]}}
- {apiVersion: v1, kind: Node, metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}, spec: {unschedulable: true}, status: {conditions: [{type: Ready, status: "False", lastTransitionTime: "2025-06-01T08:00:00Z"}], nodeInfo: {kubeletVersion: v1.28.1}}}
- {apiVersion: v1, kind: Node, metadata: {name: worker-1, labels: {node-role.kubernetes.io/infra: ""}, annotations: {machineconfiguration.openshift.io/currentConfig: a, machineconfiguration.openshift.io/desiredConfig: a, machineconfiguration.openshift.io/state: Done}}, status: {conditions: [{type: Ready, status: "True"}], nodeInfo: {kubeletVersion: v1.31.8}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: shop, name: budget}, spec: {maxUnavailable: 0, selector: {matchLabels: {a: b}}}, status: {currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0}}
- {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: pod-1, labels: {a: b}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: replicas-1, uid: "1", controller: true}]}, spec: {nodeName: worker-1, containers: [{name: c, image: i}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: storage}, status: {versions: [{name: operator, version: "4.18.3"}], conditions: [{type: Degraded, status: "True", lastTransitionTime: "2025-06-01T08:00:00Z"}, {type: Available, status: "False", lastTransitionTime: "2025-06-01T08:00:00Z"}, {type: Upgradeable, status: "False", reason: X, message: "run $(touch made)"}]}}
- {apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.metrics}, spec: {service: {namespace: system, name: gone}}, status: {conditions: [{type: Available, status: "False"}]}}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook}, webhooks: [{name: a.b.c, failurePolicy: Fail, clientConfig: {service: {namespace: system, name: gone}}, rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]}]}
`

// newHostile is a server that has the objects of archives by hostile names.
func newHostile(t *testing.T) string {
	t.Helper()
	list := filepath.Join(t.TempDir(), "unhealthy.yaml")
	if err := os.WriteFile(list, []byte(unhealthy), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := archive.Open(t.Context(), "../../../examples/archive", list)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for from, to := range hostileNames() {
		quoted, err := json.Marshal(to)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, `"`+from+`"`, string(quoted))
	}
	renamed := strings.NewReplacer(names...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.Clone(r.Context())
		asked.Header.Set("Accept", "application/json")
		response, err := objects.RoundTrip(asked)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		_, _ = renamed.WriteString(w, string(content))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// fenced is a command in Markdown.
var fenced = regexp.MustCompile("(?m)^```sh\n(.*)\n```$")

// Whatever a server calls its objects, what a verb prints to be typed makes no file when it is pasted into a shell.
func TestHostileNamesThroughVerbs(t *testing.T) {
	hostile := []string{"--kubeconfig", writeKubeconfig(t, newHostile(t))}
	programs := t.TempDir()
	for _, name := range []string{"oc", "grep", "podman", "curl"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		args  []string
		least int
	}{
		"Targets":  {args: []string{"targets", "--details"}, least: 10},
		"Target":   {args: []string{"targets", "--to", "4.19.1", "--details"}, least: 10},
		"Markdown": {args: []string{"targets", "--to", "4.19.1", "--details", "-o", "markdown"}, least: 10},
		"Drains":   {args: []string{"drain-plan", "--details"}, least: 1},
		"Fleet":    {args: []string{"fleet", "targets", "--kubeconfigs", hostile[1], "--to", "4.19.1", "--details"}, least: 1},
		"After":    {args: []string{"after"}, least: 5},
		"Status":   {args: []string{"status"}, least: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "Fleet" {
				tc.args = append(tc.args, hostile...)
			}
			got := program.Call(t, tc.args...)
			commands := commandsOf(got.Stdout + got.Stderr)
			for _, block := range fenced.FindAllStringSubmatch(got.Stdout, -1) {
				commands = append(commands, block[1])
			}
			for _, command := range commands {
				expectNothingMade(t, programs, command)
			}
			if len(commands) < tc.least {
				t.Errorf("%d commands are shown, want at least %d:\n%s%s", len(commands), tc.least, got.Stdout, got.Stderr)
			}
		})
	}
}

// expectNothingMade pastes a command into a shell of which the programs do nothing.
func expectNothingMade(t *testing.T, programs, command string) {
	t.Helper()
	working := t.TempDir()
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	shell.Dir, shell.Env = working, []string{"PATH=" + programs + ":/bin:/usr/bin", "HOME=/nowhere"}
	if output, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", command, err, output)
	}
	if left, err := os.ReadDir(working); err != nil || len(left) > 0 {
		t.Errorf("%s made the file %v, %v", command, left, err)
	}
}
