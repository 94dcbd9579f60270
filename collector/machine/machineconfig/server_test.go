package machineconfig_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/internal/checktest"
)

// state is a cluster: YAML of its objects by resource, such as "machineconfiguration.openshift.io/v1/machineconfigs".
type state struct {
	objects map[string][]string
	// refused and unserved are resources, by their plural.
	refused, unserved string
}

const (
	configs = "machineconfiguration.openshift.io/v1/machineconfigs"
	pools   = "machineconfiguration.openshift.io/v1/machineconfigpools"
	streams = "machineconfiguration.openshift.io/v1/osimagestreams"
	nodes   = "v1/nodes"
)

// kinds are those of the resources that the server has.
func kinds() map[string]string {
	return map[string]string{
		configs: "MachineConfig", pools: "MachineConfigPool", "machineconfiguration.openshift.io/v1/kubeletconfigs": "KubeletConfig",
		streams: "OSImageStream", nodes: "Node",
		"config.openshift.io/v1/infrastructures": "Infrastructure", "config.openshift.io/v1/clusterversions": "ClusterVersion",
		"config.openshift.io/v1/nodes": "Node", "config.openshift.io/v1/clusteroperators": "ClusterOperator",
	}
}

// serve serves a state by the API of Kubernetes, over HTTP.
func serve(t *testing.T, of state) checktest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, body := of.answer(t, r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return checktest.Connect(&rest.Config{Host: server.URL})
}

func (s state) answer(t *testing.T, r *http.Request) (int, any) {
	t.Helper()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		return http.StatusOK, map[string]any{"major": "1", "minor": "31", "gitVersion": "v1.31.8"}
	case r.URL.Path == "/api":
		return http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case r.URL.Path == "/apis":
		return http.StatusOK, s.groups()
	case path[0] == "api" && len(path) == 2, path[0] == "apis" && len(path) == 3:
		return http.StatusOK, s.resources(strings.Join(path[1:], "/"))
	case path[0] == "api" && len(path) > 2:
		return s.objectsOf(t, "v1/"+path[2], path[3:], r)
	case path[0] == "apis" && len(path) > 3:
		return s.objectsOf(t, strings.Join(path[1:4], "/"), path[4:], r)
	}
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound)
}

func failure(code int, reason metav1.StatusReason) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: reason, Message: string(reason),
	}
}

func (s state) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	for _, name := range []string{"config.openshift.io", "machineconfiguration.openshift.io"} {
		version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: name, Versions: []metav1.GroupVersionForDiscovery{version},
			PreferredVersion: version,
		})
	}
	return list
}

func (s state) resources(version string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version}
	for resource, kind := range kinds() {
		if name, ok := strings.CutPrefix(resource, version+"/"); ok && name != s.unserved {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Verbs: metav1.Verbs{"get", "list"}})
		}
	}
	return list
}

func (s state) objectsOf(t *testing.T, resource string, rest []string, r *http.Request) (int, any) {
	t.Helper()
	name := resource[strings.LastIndex(resource, "/")+1:]
	switch {
	case name == s.refused:
		return failure(http.StatusForbidden, metav1.StatusReasonForbidden)
	case name == s.unserved || kinds()[resource] == "":
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	version, _ := strings.CutSuffix(resource, "/"+name)
	var found []any
	for _, text := range s.objects[resource] {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Error(err)
		}
		object["apiVersion"], object["kind"] = version, kinds()[resource]
		metadata, _ := object["metadata"].(map[string]any)
		if len(rest) == 1 && metadata["name"] == rest[0] {
			return http.StatusOK, object
		}
		found = append(found, object)
	}
	if len(rest) == 1 {
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	return http.StatusOK, page(found, version, kinds()[resource]+"List", r)
}

// page is the page of a list that a request is for.
func page(found []any, version, kind string, r *http.Request) map[string]any {
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	metadata := map[string]any{"resourceVersion": "9"}
	items := slices.Clone(found[min(first, len(found)):])
	if limit > 0 && len(items) > limit {
		items, metadata["continue"] = items[:limit], strconv.Itoa(first+limit)
	}
	return map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata, "items": append([]any{}, items...)}
}
