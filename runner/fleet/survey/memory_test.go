package survey_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
	"github.com/openshift/update-preflight/runner/fleet/survey"
)

// surveyed is the variable of the environment with the address of the fleet that this program surveys.
const surveyed = "TEST_SURVEYED"

func TestMain(m *testing.M) {
	if address := os.Getenv(surveyed); address != "" {
		os.Exit(surveyAll(address))
	}
	os.Exit(m.Run())
}

// members of the fleet by what their API servers send, and how many they are.
var fleetOf = map[string]int{"empty": 2, "spaces": 1, "nulls": 6, "messages": 6, "switch": 6, "drip": 1, "large": 2, "normal": 10}

// TestAttacksOnMemory surveys a fleet in two gigabytes of address space: clusters that send what becomes large are
// Unreachable, and each of the others has its row.
func TestAttacksOnMemory(t *testing.T) {
	server := httptest.NewServer(fleetServer(t))
	t.Cleanup(server.Close)
	command := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -v "$1" && exec "$0"`, os.Args[0], addressSpace)
	command.Env = append(os.Environ(), surveyed+"="+server.URL, "GOGC=30") // as oc-preflight
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes()[:min(stderr.Len(), 2000)])
	}
	var rows []fleet.Row
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		kind, _, _ := strings.Cut(row.Cluster.Name, "-")
		fine := kind == "large" || kind == "normal"
		if fine != (row.State == fleet.Ready) {
			t.Errorf("%s is %s: %s", row.Cluster.Name, row.State, row.Message)
		}
		fleetOf[kind]--
	}
	for kind, missing := range fleetOf {
		if missing != 0 {
			t.Errorf("%d rows of %s are missing", missing, kind)
		}
	}
}

// surveyAll prints the rows of all members.
func surveyAll(address string) int {
	config := clientcmdapi.Config{Contexts: map[string]*clientcmdapi.Context{}}
	for kind, count := range fleetOf {
		for i := range count {
			config.Contexts[fmt.Sprintf("%s-%d", kind, i)] = &clientcmdapi.Context{}
		}
	}
	all, err := roster.Contexts(config, []string{"*"}, func(name string) (*rest.Config, error) {
		return &rest.Config{Host: address + "/" + name}, nil
	}, func(config *rest.Config) (*cluster.Cluster, error) { return cluster.Connect(config, "test") })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	rows, err := survey.Survey{Parallel: len(all), Timeout: answerTime}.Rows(context.Background(), all, readPods)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(rows)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// readPods keeps all pods of a cluster until all are read.
func readPods(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error) {
	var pods []*corev1.Pod
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return reached.Cluster.Kubernetes.CoreV1().Pods("").List(ctx, options)
	})
	if err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		pods = append(pods, item.(*corev1.Pod)) //nolint:forcetypeassert,errcheck // a PodList has nothing else
		return nil
	}); err != nil {
		return fleet.Row{}, err
	}
	return fleet.Row{Cluster: member.Cluster, State: fleet.Ready, Message: fmt.Sprint(len(pods))}, nil
}

func fleetServer(t *testing.T) http.HandlerFunc {
	t.Helper()
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "namespace", Labels: map[string]string{"app": "a"}}}
	pod.Spec.Containers = slices.Repeat([]corev1.Container{{
		Name: "container", Image: "quay.io/example/image",
		Env: []corev1.EnvVar{{Name: "A", Value: "B"}},
	}}, 3)
	page := func(next string) []byte {
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: next}, Items: slices.Repeat([]corev1.Pod{pod}, 500)}
		encoded, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), list)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	last, spaces := page(""), strings.Repeat(" ", 64<<10)
	messages, err := (&runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		Raw:      bytes.Repeat([]byte{2<<3 | 2, 0}, 480_000),
	}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, request *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
		w.Header().Set("Content-Type", "application/json")
		switch kind, _, _ := strings.Cut(name, "-"); kind {
		case "empty": // less than half of what is refused by itself
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"again"},"items":[`+strings.Repeat("{},", 30_000)+`{}]}`)
		case "nulls":
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[`+strings.Repeat("null,", 480_000)+`{}]}`)
		case "spaces":
			for range 60 << 4 {
				_, _ = io.WriteString(w, spaces)
			}
		case "messages":
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			_, _ = w.Write(append([]byte("k8s\x00"), messages...))
		case "switch":
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n")
				for range 10 << 14 {
					if _, err := io.WriteString(connection, spaces); err != nil {
						return
					}
				}
			}
		case "drip": // a page that does not end
			_, _ = io.WriteString(w, strings.Repeat(spaces, 20<<4))
			_ = http.NewResponseController(w).Flush()
			<-request.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			var number int
			_, _ = fmt.Sscan(request.URL.Query().Get("continue"), &number)
			if kind == "large" && number < 50 {
				_, _ = w.Write(page(fmt.Sprint(number + 1)))
				return
			}
			_, _ = w.Write(last)
		}
	}
}
