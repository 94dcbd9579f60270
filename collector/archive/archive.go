// Package archive answers: how can an archive of a cluster be read as if it were the cluster?
//
// [Open] reads a must-gather, the tree of "oc adm inspect", an archive of the insights-operator or files of lists,
// and [Archive.Config] returns the configuration by which clients reach it. The archive is read-only, and its
// clock shows its newest timestamp, or the time of this machine if it has none.
//
// An answer is complete, partial or absent. A response that lacks objects says so in [gap.Gap.Header]; a request
// for objects that were not gathered fails with [gap.Reason]. It fails with NotFound only if the archive proves
// it: by a list without the object, or by the APIs that the cluster served.
package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	configscheme "github.com/openshift/client-go/config/clientset/versioned/scheme"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/objects"
	"github.com/openshift/update-preflight/collector/gap"
)

const (
	// host is the name by which clients address an archive. It never leaves the process.
	host = "https://archive.invalid"
	// maxRequest bounds the body of a request, in bytes.
	maxRequest = 1 << 20
)

// Archive answers requests as the API server of the cluster would, without a network.
type Archive struct{ state *inventory.Inventory }

// Open reads the archives of one cluster, each a directory or a file. A path may continue within a file. If there
// are several clusters, or none, the error lists the ones that were found.
func Open(ctx context.Context, paths ...string) (*Archive, error) {
	state, err := inventory.Open(ctx, paths...)
	if err != nil {
		return nil, err
	}
	return &Archive{state: state}, nil
}

// OpenHosted reads both clusters of a dump of HyperShift: the management cluster, and the guest of the hosted
// cluster of that name; the guest is nil if the dump does not contain it.
func OpenHosted(ctx context.Context, name string, paths ...string) (management, guest *Archive, err error) {
	above, below, err := inventory.OpenHosted(ctx, name, paths...)
	if err != nil {
		return nil, nil, err
	}
	management = &Archive{state: above}
	if below != nil {
		guest = &Archive{state: below}
	}
	return management, guest, nil
}

// About returns the identity of the archive, and the parts that could not be read so far.
func (a *Archive) About() inventory.About { return a.state.About() }

// Now is the time as of which the archive is evaluated: its newest timestamp, or the time of this machine if it
// has none. That time is later, so that anything with an end has ended.
func (a *Archive) Now() time.Time {
	if newest := a.state.About().Time; !newest.IsZero() {
		return newest
	}
	return time.Now().UTC()
}

// Config is the configuration of clients of the archive.
func (a *Archive) Config() *rest.Config { return &rest.Config{Host: host, Transport: a} }

type answer struct {
	code int
	body []byte
	gaps []gap.Gap
}

// RoundTrip implements http.RoundTripper.
func (a *Archive) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer request.Body.Close()
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	answered, err := a.answer(request)
	if err != nil {
		answered = failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), gap.Gap{})
	}
	response := &http.Response{
		Status: strconv.Itoa(answered.code) + " " + http.StatusText(answered.code), StatusCode: answered.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: request,
		ContentLength: int64(len(answered.body)),
	}
	if request.Method != http.MethodHead {
		response.Body = io.NopCloser(bytes.NewReader(answered.body))
	}
	response.Header.Set("Content-Type", "application/json")
	response.Header.Set("Date", a.Now().Format(http.TimeFormat))
	for _, each := range answered.gaps {
		header, err := each.Header()
		if err != nil {
			return nil, fmt.Errorf("the gap %s cannot be recorded: %w", each, err)
		}
		response.Header.Add("Warning", header)
	}
	return response, nil
}

func (a *Archive) answer(request *http.Request) (answer, error) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if request.Method == http.MethodPost && len(path) == 4 && path[1] == "authorization.k8s.io" && request.Body != nil {
		return review(path[3], io.LimitReader(request.Body, maxRequest))
	}
	switch {
	case request.Method != http.MethodGet && request.Method != http.MethodHead:
		return failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "an archive is read-only", gap.Gap{}), nil
	case len(path) == 1, len(path) == 2 && path[0] == "api", len(path) <= 3 && path[0] == "apis":
		return a.discover(path), nil
	case path[0] == "api" && len(path) > 7 && path[4] == "services" && path[6] == "proxy":
		return a.monitoring(path[7:], request.URL.Query())
	case path[0] == "api":
		return a.objects(target{version: path[1]}, path[2:], request)
	case path[0] == "apis":
		return a.objects(target{resource: resource{Group: path[1]}, version: path[2]}, path[3:], request)
	}
	return absent(gap.Gap{Resource: request.URL.Path}), nil
}

const maxAlerts = 1000

// The types of errors of responses without data, in place of the types of Prometheus: data that was not
// gathered, and a cluster that has no monitoring.
const notInArchive, noMonitoring = "not_in_archive", "no_monitoring"

type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`
	ActiveAt    string            `json:"activeAt,omitempty"`
	Value       string            `json:"value"`
}

type response struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// monitoring answers as the cluster's querier, for the alerts and the queries of the archive.
func (a *Archive) monitoring(path []string, query url.Values) (answer, error) {
	switch strings.Join(path, "/") {
	case "api/v1/alerts":
		return a.alerts(), nil
	case "api/v1/query":
		if data, ok := a.state.Collection().Queries[query.Get("query")]; ok {
			return encoded(response{Status: "success", Data: data}), nil
		}
		return a.notGathered("queries", "the archive has no result of the query"), nil
	}
	return a.notGathered("", "the archive has no data for /"+strings.Join(path, "/")), nil
}

// notGathered is the answer where the archive has no data of that name, with the cause where it is known.
func (a *Archive) notGathered(name, message string) answer {
	kind := notInArchive
	collection, routes := a.state.Collection(), resource{Group: "route.openshift.io", Name: "routes"}
	if _, text, err := a.state.Text(alertFiles()...); text == "" && err == nil &&
		(a.state.Unserved(routes) || slices.Contains(collection.Nonexistent, routes.Object("openshift-monitoring", "thanos-querier"))) {
		kind = noMonitoring
	}
	for _, missing := range collection.Missing {
		if missing.Resource == name && missing.Cause != "" {
			message += ": " + missing.Cause
			break
		}
	}
	lacking := encoded(response{Status: "error", ErrorType: kind, Error: message})
	lacking.code = http.StatusNotImplemented
	return lacking
}

const insightsAlerts = "config/alerts.json"

func alertFiles() []string {
	return []string{"monitoring/prometheus/rules.json", "monitoring/alerts.json", insightsAlerts}
}

func (a *Archive) alerts() answer {
	name, text, err := a.state.Text(alertFiles()...)
	switch {
	case err != nil:
		return a.notGathered("", err.Error())
	case text == "":
		return a.notGathered("alerts", "the archive has no alerts")
	}
	alerts, err := parseAlerts([]byte(text))
	if err != nil {
		return a.notGathered("", fmt.Sprintf("the file %s of the archive cannot be read: %v", name, err))
	}
	found := response{Status: "success", Data: map[string]any{"alerts": alerts}}
	if name == insightsAlerts && len(alerts) >= maxAlerts {
		found.Warnings = []string{fmt.Sprintf("the archive contains only %d alerts", maxAlerts)}
	}
	return encoded(found)
}

// parseAlerts reads a response of Prometheus with rules or alerts, as its content has it, since
// must-gather up to 4.8 names both "alerts", or the list of an Alertmanager.
func parseAlerts(text []byte) ([]alert, error) {
	if text[0] == '[' {
		return ofAlertmanager(text)
	}
	var body struct {
		Status string `json:"status"`
		Data   struct {
			Alerts *[]alert `json:"alerts"`
			Groups *[]struct {
				Rules []struct {
					Alerts []alert `json:"alerts"`
				} `json:"rules"`
			} `json:"groups"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	if err := objects.RefuseDuplicates(text, "data", "groups", "rules", "alerts"); err != nil {
		return nil, err
	}
	switch {
	case body.Status != "success":
		return nil, fmt.Errorf("its status is %q", body.Status)
	case body.Data.Alerts != nil:
		return *body.Data.Alerts, nil
	case body.Data.Groups == nil:
		return nil, errors.New("it has neither alerts nor rules")
	}
	alerts := []alert{}
	for _, group := range *body.Data.Groups {
		for _, rule := range group.Rules {
			alerts = append(alerts, rule.Alerts...)
		}
	}
	return alerts, nil
}

// ofAlertmanager are the alerts that an Alertmanager has: all of them are firing.
func ofAlertmanager(text []byte) ([]alert, error) {
	var list []struct {
		alert

		StartsAt string `json:"startsAt"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if err := objects.RefuseDuplicates(text); err != nil {
		return nil, err
	}
	alerts := make([]alert, 0, len(list))
	for _, each := range list {
		each.State, each.ActiveAt = "firing", each.StartsAt
		alerts = append(alerts, each.alert)
	}
	return slices.Clip(alerts), nil
}

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
		listed.gaps = []gap.Gap{{Resource: "/apis", Partial: true, Cause: "the APIs of the objects in the archive"}}
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
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: schema.GroupVersion{Group: group, Version: version}.String(),
	}
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
	listed.gaps = []gap.Gap{{Group: group, Resource: "/" + version, Partial: true, Cause: "the resources of the objects in the archive"}}
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

// listKind returns the kind of a list of the resource, whose objects have the kind that the archive knows. A typed
// client knows the kind of a list without objects, and other clients need none.
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
		asked.Status.Reason = "an archive is read-only"
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
