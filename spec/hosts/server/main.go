// A stand-in for an API server that keeps core/v1 Events in memory, and takes a thousand a second on a busy machine. It
// answers as the real one does: 201 to a new event, 409 if the name exists, 404 to a patch of an event that it does not
// have.
//
//	server DIR
//
// It writes its certificate to DIR/ca.crt, then its loopback port (TLS) to DIR/port. A client needs no token. It deletes
// nothing. GET /ledger?namespace=N answers what it has:
//
//	{ "events": 3, "counts": { "OBJECT": 17, ... }, "faults": ["..."] }
//
// A count is the sum of those of all events about the object. A fault is a count that went back, or that is none. The
// server ends when its standard input does.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

type event map[string]any

type ledger struct {
	Events int            `json:"events"`
	Counts map[string]int `json:"counts"`
	Faults []string       `json:"faults"`
}

type server struct {
	lock    sync.Mutex
	version int
	events  map[string]map[string]event // by namespace and name
	faults  map[string][]string
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func object(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

func count(e event) int {
	n, _ := e["count"].(float64)
	return int(n)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason string) {
	answer(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
		"message": reason, "code": code})
}

// Stores the event under its next version; with the lock held.
func (s *server) keep(namespace string, e event) {
	s.version++
	metadata := object(e["metadata"])
	metadata["resourceVersion"] = strconv.Itoa(s.version)
	s.events[namespace][text(metadata["name"])] = e
	if count(e) < 1 {
		s.faults[namespace] = append(s.faults[namespace], fmt.Sprint("no count: ", e))
	}
}

func (s *server) create(w http.ResponseWriter, namespace string, e event) {
	if s.events[namespace] == nil {
		s.events[namespace] = map[string]event{}
	}
	name := text(object(e["metadata"])["name"])
	if name == "" {
		refuse(w, http.StatusUnprocessableEntity, "Invalid")
	} else if s.events[namespace][name] != nil {
		refuse(w, http.StatusConflict, "AlreadyExists")
	} else {
		s.keep(namespace, e)
		answer(w, http.StatusCreated, e)
	}
}

// Merges the fields of the top level, which is all that a patch of an event changes.
func (s *server) patch(w http.ResponseWriter, namespace, name string, fields event) {
	old := s.events[namespace][name]
	if old == nil {
		refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	e := event{}
	for key, value := range old {
		e[key] = value
	}
	for key, value := range fields {
		if key != "metadata" {
			e[key] = value
		}
	}
	if count(e) < count(old) {
		s.faults[namespace] = append(s.faults[namespace],
			fmt.Sprintf("%s: the count went back from %d to %d", name, count(old), count(e)))
	}
	s.keep(namespace, e)
	answer(w, http.StatusOK, e)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	words := strings.Split(r.URL.Path, "/") // "", api, v1, namespaces, NAMESPACE, events, NAME
	var body event
	if len(words) < 6 || words[5] != "events" {
		refuse(w, http.StatusNotFound, "NotFound")
		return
	} else if json.NewDecoder(r.Body).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, "BadRequest")
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	switch {
	case r.Method == http.MethodPost && len(words) == 6:
		s.create(w, words[4], body)
	case r.Method == http.MethodPatch && len(words) == 7:
		s.patch(w, words[4], words[6], body)
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func (s *server) tell(w http.ResponseWriter, r *http.Request) {
	s.lock.Lock()
	defer s.lock.Unlock()
	namespace := r.FormValue("namespace")
	l := ledger{Counts: map[string]int{}, Faults: append([]string{}, s.faults[namespace]...)}
	for _, e := range s.events[namespace] {
		l.Events++
		l.Counts[text(object(e["involvedObject"])["name"])] += count(e)
	}
	answer(w, http.StatusOK, l)
}

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func write(content []byte, path ...string) {
	name := filepath.Join(path...)
	if err := os.WriteFile(name+".new", content, 0o644); err != nil {
		log.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: server DIR")
	}
	s := &server{events: map[string]map[string]event{}, faults: map[string][]string{}}
	own := certificate()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	handler := http.NewServeMux()
	handler.Handle("/api/", s)
	handler.HandleFunc("/ledger", s.tell)
	frontend := &http.Server{
		Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}}, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { log.Fatal(frontend.ServeTLS(listener, "", "")) }()
	write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}), os.Args[1], "ca.crt")
	write([]byte(strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)), os.Args[1], "port")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
