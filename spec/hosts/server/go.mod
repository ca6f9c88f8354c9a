module evrec/spec/hosts/server

go 1.19
