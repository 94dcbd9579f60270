package archive

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	configscheme "github.com/openshift/client-go/config/clientset/versioned/scheme"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/gap"
)

func (a *Archive) discover(path []string) answer {
	switch strings.Join(path, "/") {
	case "version":
		info := a.state.Collection().Version
		if current := a.state.Kubernetes(); info.GitVersion == "" && current != "" {
			major, rest, _ := strings.Cut(current, ".")
			minor, _, _ := strings.Cut(rest, ".")
			info = version.Info{Major: major, Minor: minor, GitVersion: "v" + current}
		}
		return encoded(info)
	case "metrics":
		return a.metrics()
	case "api":
		return encoded(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for group, versions := range a.groups() {
			described := metav1.APIGroup{Name: group}
			for _, each := range slices.Sorted(maps.Keys(versions)) {
				described.Versions = append(described.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + each, Version: each})
			}
			if group == "" {
				continue
			}
			described.PreferredVersion = described.Versions[0]
			list.Groups = append(list.Groups, described)
		}
		slices.SortFunc(list.Groups, func(a, b metav1.APIGroup) int { return cmp.Compare(a.Name, b.Name) })
		listed := encoded(list)
		listed.gaps = []gap.Gap{{Resource: "/apis", Partial: true, Cause: "the APIs of which the archive has objects"}}
		return listed
	}
	if path[0] == "api" || path[0] == "apis" {
		return a.resources(path[1:])
	}
	return absent(gap.Gap{Resource: "/" + strings.Join(path, "/")})
}

func (a *Archive) metrics() answer {
	text := a.state.Collection().Metrics
	if text == "" {
		return absent(gap.Gap{Resource: "/metrics"})
	}
	return answer{code: http.StatusOK, body: []byte(text)}
}

func (a *Archive) resources(path []string) answer {
	group, version := "", path[len(path)-1]
	if len(path) == 2 {
		group = path[0]
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: schema.GroupVersion{Group: group, Version: version}.String()}
	for _, name := range slices.Sorted(maps.Keys(a.groups()[group][version])) {
		t := a.state.Table(resource{Group: group, Name: name}, "")
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: name, Kind: strings.TrimSuffix(listKind(resource{Group: group, Name: name}, t.Kind), "List"), Verbs: metav1.Verbs{"get", "list"},
			Namespaced: slices.ContainsFunc(t.In(""), func(each inventory.Entry) bool { return each.Namespace != "" }),
		})
	}
	if len(list.APIResources) == 0 {
		return absent(gap.Gap{Group: group, Resource: "/" + version})
	}
	listed := encoded(list)
	listed.gaps = []gap.Gap{{Group: group, Resource: "/" + version, Partial: true, Cause: "the resources of which the archive has objects"}}
	return listed
}

func (a *Archive) groups() map[string]map[string]map[string]bool {
	found := map[string]map[string]map[string]bool{}
	for _, key := range a.state.Resources() {
		for _, each := range a.state.Table(key, "").In("") {
			if found[key.Group] == nil {
				found[key.Group] = map[string]map[string]bool{}
			}
			if found[key.Group][each.Version] == nil {
				found[key.Group][each.Version] = map[string]bool{}
			}
			found[key.Group][each.Version][key.Name] = true
		}
	}
	return found
}

// listKind is the kind of a list of the resource, whose objects have the kind that the archive
// knows. A typed client knows that of a list without objects, and other clients need none.
func listKind(of resource, kind string) string {
	if known := kinds()[of]; known != "" {
		kind = known
	}
	return kind + "List"
}

var kinds = sync.OnceValue(func() map[resource]string { //nolint:gochecknoglobals // a constant that is computed once
	known := map[resource]string{}
	for _, types := range []*runtime.Scheme{scheme.Scheme, configscheme.Scheme} {
		for kind := range types.AllKnownTypes() {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			known[resource{Group: plural.Group, Name: plural.Resource}] = kind.Kind
		}
	}
	return known
})

// review answers a review of permissions: everything may be read, and nothing written.
func review(kind string, body io.Reader) (answer, error) {
	reading := []string{"get", "list"}
	data, err := io.ReadAll(body)
	if err != nil {
		return answer{}, err
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil) // typed clients send protobuf
	if err != nil {
		return answer{}, err
	}
	switch asked := decoded.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		asked.Kind, asked.APIVersion = "SelfSubjectAccessReview", authorizationv1.SchemeGroupVersion.String()
		asked.Status.Allowed = asked.Spec.ResourceAttributes != nil && slices.Contains(reading, asked.Spec.ResourceAttributes.Verb)
		asked.Status.Reason = "an archive can only be read"
		return created(asked), nil
	case *authorizationv1.SelfSubjectRulesReview:
		asked.Kind, asked.APIVersion = "SelfSubjectRulesReview", authorizationv1.SchemeGroupVersion.String()
		asked.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: reading, APIGroups: []string{"*"}, Resources: []string{"*"}}}
		return created(asked), nil
	}
	return absent(gap.Gap{Group: authorizationv1.GroupName, Resource: kind}), nil
}

func created(value any) answer {
	made := encoded(value)
	made.code = http.StatusCreated
	return made
}

func encoded(value any) answer {
	body, err := json.Marshal(value)
	if err != nil {
		return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error(), gap.Gap{})
	}
	return answer{code: http.StatusOK, body: body}
}
