package srv

import (
	"fmt"
	x "github.com/a/b/v2"
	"example.com/m/util"
)

// Server serves.
type Server struct {
	Base
	name string
	db   *util.DB
}
type Iface interface { Run(a int) error; fmt.Stringer }
type ID = int
type Fn func(int) error
const Max, Min = 3, 1
var global = NewServer()

// NewServer makes.
func NewServer() *Server { return &Server{name: "a"} }
func (s *Server) Run(a int) error {
	s.db.Query(a)
	s.helper()
	fmt.Println(x.Do())
	t := NewServer()
	t.Run(1)
	for i := range s.list() { _ = i }
	return nil
}
func (s Server) helper() {}
func TestRun(t *testing.T) { NewServer().Run(1); f := func() { g() } ; f() }
