-- Once, as PostgreSQL's administrator: psql -U postgres -f 1-roles.sql
CREATE ROLE aip LOGIN PASSWORD '${database_password}';
CREATE ROLE aip_node LOGIN PASSWORD '${node_database_password}';
CREATE DATABASE aip OWNER aip ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE aip FROM PUBLIC;
GRANT CONNECT ON DATABASE aip TO aip_node;
