package baseline

import (
	"slices"
	"strings"
)

// redactedCause is why a kind is not read in a redacted State: the cause may name what was not read.
const redactedCause = "it was not read completely"

// Redacted is the State in which hash replaces the names of the namespaces of users and of what is in them, and the
// facts that are made of names; problems have neither messages nor nodes, and what is Unread has no cause. A later
// State that is redacted by the same hash has the same keys and facts, so that the two can be compared; names of users
// cannot be read from it. Objects of the cluster, such as its nodes, keep their names.
func (s State) Redacted(hash func(name string) string) State {
	redacted := s
	redacted.Objects = make(map[Key]Object, len(s.Objects))
	for key, object := range s.Objects {
		redacted.Objects[key.Redacted(hash)] = object.redacted(key, hash)
	}
	redacted.Unread = nil
	for kind := range s.Unread {
		if redacted.Unread == nil {
			redacted.Unread = map[Kind]string{}
		}
		redacted.Unread[kind] = redactedCause
	}
	return redacted
}

// Redacted is the key with its namespace and name replaced, where the namespace is one of a user.
func (k Key) Redacted(hash func(name string) string) Key {
	if !k.ofUser() {
		return k
	}
	return Key{Kind: k.Kind, Namespace: hash(k.Namespace), Name: hash(k.Namespace + "/" + k.Name)}
}

func (k Key) ofUser() bool { return k.Namespace != "" && !k.Platform() }

func (o Object) redacted(key Key, hash func(name string) string) Object {
	named := func(kinds ...Kind) bool { return slices.Contains(kinds, key.Kind) }
	if key.ofUser() && o.Detail != "" && named(StatefulSet, ClusterServiceVersion) { // which have the name of the object
		o.Detail = hash(key.Namespace + "/" + o.Detail)
	}
	if key.ofUser() && o.Revision != "" && named(Service) { // a digest without a key, of labels that can be guessed
		o.Revision = hash(key.Namespace + "/" + o.Revision)
	}
	if namespace, name, found := strings.Cut(o.Detail, "/"); found && named(ValidatingWebhook, MutatingWebhook, APIService) { // objects of the cluster, with the name of a Service
		service := Key{Kind: Service, Namespace: namespace, Name: name}.Redacted(hash)
		o.Detail = service.Namespace + "/" + service.Name
	}
	o.Problems = slices.Clone(o.Problems)
	for at := range o.Problems {
		o.Problems[at].Message, o.Problems[at].Node = "", ""
	}
	return o
}
