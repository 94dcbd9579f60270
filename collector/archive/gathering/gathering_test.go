package gathering_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/archive/gathering"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/writing"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
)

// object is an object of the server: its place, and more fields.
type object struct {
	namespace, name string
	more            map[string]any
}

func (o object) content() map[string]any {
	content := map[string]any{"metadata": map[string]any{"name": o.name, "namespace": o.namespace}}
	maps.Copy(content, o.more)
	return content
}

// server is an API server with resources of the core group.
type server struct {
	objects map[string][]object
	// fails has the code of the page of a list from that object on.
	fails map[string]map[int]int
	// pageBound bounds the pages. With whole, the server does not read in pages.
	pageBound int
	whole     bool
}

func (s server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	write := func(code int, content any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(content) // the client sees that it is torn
	}
	switch {
	case request.URL.Path == "/version":
		write(http.StatusOK, map[string]string{"gitVersion": "v1.31.8"})
	case request.URL.Path == "/api":
		write(http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case request.URL.Path == "/apis":
		write(http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case request.URL.Path == "/api/v1":
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1"}
		for _, name := range []string{"pods", "secrets", "configmaps"} {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: name, Kind: strings.ToUpper(name[:1]) + name[1:len(name)-1],
				Namespaced: true, Verbs: []string{"get", "list"},
			})
		}
		write(http.StatusOK, list)
	case len(path) == 3 && path[0] == "api":
		code, content := s.list(path[2], request)
		write(code, content)
	case len(path) == 6 && path[0] == "api":
		at := slices.IndexFunc(s.objects[path[4]], func(o object) bool { return o.namespace == path[3] && o.name == path[5] })
		if at < 0 {
			write(http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound))
			return
		}
		write(http.StatusOK, s.objects[path[4]][at].content())
	default:
		write(http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound))
	}
}

func (s server) list(resource string, request *http.Request) (code int, content any) {
	from, _ := strconv.Atoi(request.URL.Query().Get("continue"))
	limit, err := strconv.Atoi(request.URL.Query().Get("limit"))
	if err != nil {
		return http.StatusBadRequest, status(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	if code := s.fails[resource][from]; code != 0 {
		delete(s.fails[resource], from)
		failed := status(code, map[int]metav1.StatusReason{
			http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusGone:      metav1.StatusReasonExpired,
		}[code])
		failed.Continue = strconv.Itoa(from)
		return code, failed
	}
	all := s.objects[resource]
	to, next := min(from+min(limit, s.pageBound), len(all)), ""
	if s.whole {
		to = len(all)
	}
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	items := []any{}
	for _, each := range all[from:to] {
		items = append(items, each.content())
	}
	return http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]string{"continue": next}, "items": items}
}

func status(code int, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: "the server says no",
	}
}

func list(resource string) access.Request { return access.Request{Verb: "list", Resource: resource} }

// gather gathers what a server has into a directory.
func gather(t *testing.T, s server, reads ...access.Request) (string, gathering.Summary) {
	t.Helper()
	if s.pageBound == 0 {
		s.pageBound = 2
	}
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	c, err := cluster.Connect(&rest.Config{Host: served.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "archive")
	into, err := writing.Create(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	made, err := gathering.Gather(context.Background(), c, gathering.Options{Reads: reads, Step: func(string) {}}, into)
	if err == nil {
		_, err = into.Commit()
	}
	if err := errors.Join(err, into.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, made
}

// filesIn are the files of an archive but for the collection, which is returned, too.
func filesIn(t *testing.T, dir string) ([]string, inventory.Collection) {
	t.Helper()
	var found []string
	var index inventory.Collection
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if entry.Name() != inventory.CollectionFile {
			found = append(found, filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))))
			return nil
		}
		text, err := os.ReadFile(path)
		return errors.Join(err, json.Unmarshal(text, &index))
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found, index
}

func podsOf(namespaces ...string) []object {
	var pods []object
	for i, namespace := range namespaces {
		pods = append(pods, object{namespace: namespace, name: fmt.Sprintf("p%d", i)})
	}
	return pods
}

func TestLists(t *testing.T) {
	lists := []string{"namespaces/a/core/pods.yaml", "namespaces/b/core/pods.yaml"}
	for name, tc := range map[string]struct {
		reason   string
		pods     []object
		fails    map[int]int
		files    []string
		complete bool
		missing  string
	}{
		"Pages": {reason: "a list of a namespace can be in several pages", pods: podsOf("a", "a", "a", "b"), files: lists, complete: true},
		"None":  {reason: "a list without objects is complete", complete: true},
		"Unsorted": {
			reason: "an object of a namespace whose list is written has its own file", pods: podsOf("a", "b", "a", "b"),
			files: []string{lists[0], "namespaces/a/core/pods/p2.yaml", lists[1], "namespaces/b/core/pods/p3.yaml"}, complete: true,
		},
		"Forbidden": {
			reason: "what may not be read is missing", pods: podsOf("a"), fails: map[int]int{0: http.StatusForbidden},
			missing: "the server says no",
		},
		"FailsLater": {
			reason: "a list of a namespace that is not complete is none", pods: podsOf("a", "b", "b"),
			fails: map[int]int{2: http.StatusForbidden}, files: lists[:1], missing: "the server says no",
		},
		"Expired": {
			reason: "the server has a token for the rest of a list whose token expired", pods: podsOf("a", "a", "a", "b"),
			fails: map[int]int{2: http.StatusGone}, files: lists, complete: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, made := gather(t, server{objects: map[string][]object{"pods": tc.pods}, fails: map[string]map[int]int{"pods": tc.fails}},
				list("pods"))
			got, index := filesIn(t, dir)
			if diff := cmp.Diff(tc.files, got); diff != "" {
				t.Errorf("%s; -want, +got:\n%s", tc.reason, diff)
			}
			if slices.Contains(index.Complete, "pods") != tc.complete || (len(made.Missing) > 0) == tc.complete {
				t.Errorf("%s: complete %q, missing %+v", tc.reason, index.Complete, made.Missing)
			}
			if tc.missing != "" && !strings.Contains(made.Missing[0].String(), tc.missing) {
				t.Errorf("%s: missing %q, want %q", tc.reason, made.Missing[0], tc.missing)
			}
			checkReadBack(t, dir, tc.pods, tc.complete)
		})
	}
}

// checkReadBack compares what a client of the archive lists with what the server has.
func checkReadBack(t *testing.T, dir string, pods []object, complete bool) { //nolint:revive // what is expected
	t.Helper()
	opened, err := archive.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Connect(opened.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, gaps := gap.Track(t.Context())
	read, err := c.Kubernetes.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if complete != (err == nil && len(gaps.All()) == 0) || complete && len(read.Items) != len(pods) {
		t.Errorf("read %d of %d pods, %v, gaps %v", len(read.Items), len(pods), err, gaps.All())
	}
}

func TestObjects(t *testing.T) {
	s := server{objects: map[string][]object{"configmaps": {{
		namespace: "a", name: "x",
		more: map[string]any{"data": map[string]string{"k": "v"}},
	}}}}
	get := func(name string) access.Request {
		return access.Request{Verb: "get", Resource: "configmaps", Namespace: "a", Name: name}
	}
	dir, made := gather(t, s, get("x"), get("y"), list("widgets"), access.Request{Verb: "delete", Resource: "configmaps"},
		access.Request{Verb: "get", Resource: "pods", Namespace: "a", Name: "p", Subresource: "log"})
	got, index := filesIn(t, dir)
	if diff := cmp.Diff([]string{"namespaces/a/core/configmaps/x.yaml"}, got); diff != "" || len(made.Missing) > 0 {
		t.Errorf("missing %v; -want, +got:\n%s", made.Missing, diff)
	}
	if !slices.Equal(index.Nonexistent, []string{"configmaps a/y"}) || !slices.Equal(index.Unserved, []string{"widgets"}) {
		t.Errorf("the collection is %+v", index)
	}
}

// Values of Secrets, and the environment of containers, are not in the archive.
func TestConfidential(t *testing.T) {
	s := server{pageBound: 10, objects: map[string][]object{
		"secrets": {{namespace: "a", name: "s", more: map[string]any{
			"data":       map[string]string{"password": "c2VjcmV0LXZhbHVl"},
			"stringData": map[string]string{"other": "secret-value"},
		}}},
		"pods": {{namespace: "a", name: "p", more: map[string]any{"spec": map[string]any{
			"nodeName": "n",
			"containers": []any{map[string]any{
				"name": "c", "image": "i", "env": []any{map[string]string{"name": "TOKEN", "value": "secret-value"}},
				"args": []string{"secret-value"}, "command": []string{"secret-value"},
			}},
		}}}},
	}}
	dir, _ := gather(t, s, list("secrets"), list("pods"))
	text := map[string]string{}
	for _, resource := range []string{"secrets", "pods"} {
		file, err := os.Open(filepath.Join(dir, "namespaces/a/core", resource+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(file)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		text[resource] = string(content)
		if strings.Contains(text[resource], "secret-value") || strings.Contains(text[resource], "c2VjcmV0") {
			t.Errorf("%s has a confidential value: %s", resource, content)
		}
	}
	const length = `"password":"MTIgYnl0ZXMgbG9uZw=="` // 12 bytes long
	if !strings.Contains(text["secrets"], length) || !strings.Contains(text["pods"], `"nodeName":"n"`) {
		t.Errorf("got %s", text)
	}
}
